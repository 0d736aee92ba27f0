/* What two tuples have in common at their ends, as `alongside` asks. */

#include "kernel.h"

/* common_ends(first, second) -> how many objects at the start and at the end are the same ones, none counted twice. */
FAST(common_ends)
{
    if (count != 2 || !PyTuple_Check(args[0]) || !PyTuple_Check(args[1]))
        return PyErr_Format(PyExc_TypeError, "common_ends takes two tuples");
    Py_ssize_t one = PyTuple_GET_SIZE(args[0]), two = PyTuple_GET_SIZE(args[1]), head = 0, tail = 0;
    Py_ssize_t most = one < two ? one : two;
    while (head < most && PyTuple_GET_ITEM(args[0], head) == PyTuple_GET_ITEM(args[1], head))
        head++;
    while (tail < most - head && PyTuple_GET_ITEM(args[0], one - 1 - tail) == PyTuple_GET_ITEM(args[1], two - 1 - tail))
        tail++;
    return Py_BuildValue("nn", head, tail);
}
