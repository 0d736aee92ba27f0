/* The module: its functions, and the number of their interface. */

#include "kernel.h"

#define INTERFACE 20 /* raised with `toolcrib.kernel` whenever what a function takes or gives changes */

static PyMethodDef METHODS[] = {
    {"keep", (PyCFunction)(void (*)(void))keep, METH_FASTCALL, NULL},
    {"take", (PyCFunction)(void (*)(void))take, METH_FASTCALL, NULL},
    {"same", (PyCFunction)(void (*)(void))same, METH_FASTCALL, NULL},
    {"terms", (PyCFunction)(void (*)(void))terms, METH_FASTCALL, NULL},
    {"halves", (PyCFunction)(void (*)(void))halves, METH_FASTCALL, NULL},
    {"possible", (PyCFunction)(void (*)(void))possible, METH_FASTCALL, NULL},
    {"forms", (PyCFunction)(void (*)(void))forms, METH_FASTCALL, NULL},
    {"respelt", (PyCFunction)(void (*)(void))respelt, METH_FASTCALL, NULL},
    {"suspects", (PyCFunction)(void (*)(void))suspects, METH_FASTCALL, NULL},
    {"inside", (PyCFunction)(void (*)(void))inside, METH_FASTCALL, NULL},
    {"signature", (PyCFunction)(void (*)(void))signature, METH_FASTCALL, NULL},
    {"card", (PyCFunction)(void (*)(void))card, METH_FASTCALL, NULL},
    {"analyse", (PyCFunction)(void (*)(void))analyse, METH_FASTCALL, NULL},
    {"segment", (PyCFunction)(void (*)(void))segment, METH_FASTCALL, NULL},
    {"digest", (PyCFunction)(void (*)(void))digest, METH_FASTCALL, NULL},
    {"canonical", (PyCFunction)(void (*)(void))canonical, METH_FASTCALL, NULL},
    {"read_tool", (PyCFunction)(void (*)(void))read_tool, METH_FASTCALL, NULL},
    {"common_ends", (PyCFunction)(void (*)(void))common_ends, METH_FASTCALL, NULL},
    {"postings", (PyCFunction)(void (*)(void))postings, METH_FASTCALL, NULL},
    {"add", (PyCFunction)(void (*)(void))add, METH_FASTCALL, NULL},
    {"merge", (PyCFunction)(void (*)(void))merge, METH_FASTCALL, NULL},
    {"add_merged", (PyCFunction)(void (*)(void))add_merged, METH_FASTCALL, NULL},
    {"best", (PyCFunction)(void (*)(void))best, METH_FASTCALL, NULL},
    {"leading", (PyCFunction)(void (*)(void))leading, METH_FASTCALL, NULL},
    {"ways", (PyCFunction)(void (*)(void))ways, METH_FASTCALL, NULL},
    {"matrix", (PyCFunction)(void (*)(void))matrix, METH_FASTCALL, NULL},
    {"multiplied", (PyCFunction)(void (*)(void))multiplied, METH_FASTCALL, NULL},
    {"normed", (PyCFunction)(void (*)(void))normed, METH_FASTCALL, NULL},
    {"looked", (PyCFunction)(void (*)(void))looked, METH_FASTCALL, NULL},
    {"near", (PyCFunction)(void (*)(void))near, METH_FASTCALL, NULL},
    {"read_call", (PyCFunction)(void (*)(void))read_call, METH_FASTCALL, NULL},
    {"read_answer", (PyCFunction)(void (*)(void))read_answer, METH_FASTCALL, NULL},
    {"body", (PyCFunction)(void (*)(void))body, METH_FASTCALL, NULL},
    {"shape", (PyCFunction)(void (*)(void))shape, METH_FASTCALL, NULL},
    {"family", family, METH_O, NULL},
    {"name_hash", name_hash, METH_O, NULL},
    {"name_hashes", name_hashes, METH_O, NULL},
    {"run_count", run_count, METH_O, NULL},
    {"runs", runs, METH_O, NULL},
    {"words", words, METH_O, NULL},
    {"vocabulary", vocabulary, METH_O, NULL},
    {"plain", plain, METH_O, NULL},
    {"items", items, METH_O, NULL},
    {"lines", lines, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static int fill(PyObject *module)
{
    fill_tables();
    if (fill_messages() < 0 || fill_cards() < 0 || PyType_Ready(&VOCABULARY) < 0)
        return -1;
    return PyModule_AddIntConstant(module, "INTERFACE", INTERFACE);
}

static PyModuleDef_Slot SLOTS[] = {{Py_mod_exec, (void *)fill}, {0, NULL}};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, .m_name = "_kernel", .m_size = 0, .m_methods = METHODS, .m_slots = SLOTS,
};

PyMODINIT_FUNC PyInit__kernel(void)
{
    return PyModuleDef_Init(&MODULE);
}
