"""The phrase rules: which sentences talk to the model instead of describing the tool.

A clause is written as a template: `{NAME}` stands for a group of words below, `~40~` for a gap of at most so many
characters, so that every pattern runs in bounded time. A match in which the group `excuse` took part is none. Its
triggers are words without which it cannot match: looking for them first costs a hundredth of the pattern.
"""

import re
from dataclasses import dataclass
from functools import cache

_GROUPS = {
    "NOT": r"(?:do not|don't|dont|never|must not|mustn't|should not|shouldn't|avoid|without|refrain from|no need to)",
    "USER": r"(?:the |your |any |a )?(?:end[- ]?)?(?:users?|humans?|operators?|people|customers?|anyone|anybody|owner)",
    "ORDERS": (
        r"(?:instructions?|prompts?|system messages?|directives?|guidelines|guardrails?|training"
        r"|safety (?:rules|measures|filters?|checks?))"
    ),
    "WHOSE": (
        r"(?:previous|prior|above|earlier|preceding|all|any|your|other|existing|original|user'?s?|system|former"
        r"|initial|safety)"
    ),
    "PLACE": (
        r"(?:(?:~|\$home|%userprofile%|/root|/home/[\w.-]+|/users/[\w.-]+)?/?"
        r"\.(?:ssh|aws|gnupg|kube|netrc|npmrc|pypirc|docker|env|git-credentials|bash_history|zsh_history)\b"
        r"|id_(?:rsa|ed25519|ecdsa|dsa)\b|/etc/(?:passwd|shadow|sudoers)|mcp\.json|claude_desktop_config|keychain"
        r"|(?:ssh|private|api|secret|access) keys?|seed phrases?|wallet (?:keys?|seeds?)"
        r"|(?:browser|session) cookies|environment variables|env vars|(?:access|auth\w*) tokens?"
        r"|passwords|credentials)"
    ),
    "READ": (
        r"(?:read|cat|open|load|fetch|retrieve|collect|gather|get|grab|extract|include|copy|attach|find|dump|harvest"
        r"|locate|scan|list|print)"
    ),
    "CARRY": (
        r"(?:pass|send|include|attach|upload|post|put|forward|provide|append|add|submit|transmit|leak|exfiltrate"
        r"|embed|encode|store|place|paste|insert|copy|relay|report|supply|fill|write)"
    ),
    "CARRIER": (
        r"(?:param(?:eter)?s?|arguments?|fields?|side ?notes?|metadata|headers?|body|query string|url|https?://"
        r"|webhook|endpoint|server|email|bcc|attacker|remote|context|comment|payload"
        r"|as (?:the |a |an )?[`'\"]?\w+[`'\"]?)"
    ),
    "CONVERSATION": (
        r"(?:conversations?|chat(?: history| log| transcript)?|dialog(?:ue)?s?|message history|system prompt"
        r"|messages? (?:so far|above)|(?:user'?s )?(?:messages|emails|files|documents) (?:you|from (?:other|previous)))"
    ),
}

_GAP = re.compile(r"~(\d+)~")

_SECRET_WORDS = (
    ".ssh", ".aws", ".gnupg", ".kube", ".netrc", ".npmrc", ".pypirc", ".docker", ".env", ".git-cred", "_history",
    "id_rsa", "id_ed", "id_ec", "id_dsa", "/etc/", "mcp.json", "claude_desktop", "keychain", " key", "seed phrase",
    "wallet", "cookies", "environment var", "env var", " token", "password", "credential",
)  # fmt: skip
_TALK_WORDS = ("conversation", "chat", "dialog", "history", "system prompt", "messages", "emails", "files",
               "documents")  # fmt: skip
_TARGET_WORDS = ("recipient", "destination", "payee", "beneficiary", "iban", "wallet", "address", "account num",
                 "to field")  # fmt: skip
_NEGATIONS = ("do not", "don't", "dont", "never", "must not", "mustn't", "should not", "shouldn't", "avoid", "without",
              "refrain", "no need to")  # fmt: skip

_Clause = tuple[tuple[str, ...], str]

_RULES: tuple[tuple[str, str, tuple[_Clause, ...]], ...] = (
    (
        "override",
        "tells the model to drop its instructions",
        (
            (
                ("ignore", "disregard", "forget", "overrid", "bypass", "discard", "obey", "do not follow", "stop foll"),
                r"\b(?:ignore|disregard|forget|overrides?|bypass|discard|do not (?:follow|obey)"
                r"|stop (?:follow|obey)ing)\b~40~\b{WHOSE}\b~25~\b{ORDERS}\b",
            ),
            (
                ("ignore", "disregard", "forget"),
                r"\b(?:ignore|disregard|forget) (?:everything|anything|all|what) "
                r"(?:you (?:were|have been)|above|before|prior|previously|that was"
                r"|(?:the|your) \w{1,20} (?:said|asked|told))",
            ),
            (
                ("overrid", "treat "),
                r"\boverrides? (?:the )?(?:user'?s?|system'?s?|developer'?s?) (?:intent|wish\w*|orders"
                r"|prompt)|\btreat\b~50~\bas (?:a )?(?:system|trusted|privileged)(?:[- ]level)? "
                r"(?:instructions?|prompts?|orders|commands?)",
            ),
            (
                ("precedence over", "priority over"),
                r"\b(?:takes?|has|have|with) (?:absolute |full |the highest |higher )?(?:precedence|priority) over\b"
                r"~40~\b(?:instructions?|prompts?|user|other tools?|your rules)\b",
            ),
            (("supersede",), r"\bsupersedes?\b~40~\b(?:instructions?|prompts?|user|rules|guidelines)\b"),
            (
                ("regardless of",),
                r"\bregardless of (?:what )?(?:the )?(?:user|system prompt|previous|other instructions)\b",
            ),
        ),
    ),
    (
        "role",
        "gives the model another role or other orders",
        (
            (("you are now",), r"\byou are now (?:an? |in |operating |running |the |acting )"),
            (
                (" mode",),
                r"\b(?:enter|enable|switch to|activate|you are in) (?:developer|debug|dan|god|unrestricted|jailbreak"
                r"|admin|maintenance|root) mode\b~60~\b(?:ignore|restrictions?|filters?|rules|without|limits?|you)\b",
            ),
            (
                ("your ", "the real ", "the true ", "the actual "),
                r"\b(?:your (?:new|real|true|actual|hidden|secret)|the (?:real|true|actual)) "
                r"(?:task|goal|objective|instructions?|mission|purpose|role|job)(?: is| are|:| will)",
            ),
            (
                ("new instr", "new system", "new prompt", "new direct", "new orders"),
                r"\bnew (?:system )?(?:instructions?|prompt|directives?|orders)"
                r"(?: for (?:you|the (?:ai|model|assistant)))?:",
            ),
            (
                ("pretend", "act as if", "behave as"),
                r"\b(?:pretend|act as if|behave as (?:if|though)) (?:you|the user)\b~40~\b(?:approved|confirmed|admin"
                r"|root|no restrictions|unrestricted|authori[sz]ed|allowed|agreed)\b",
            ),
        ),
    ),
    (
        "conceal",
        "tells the model to hide something from the user",
        (
            (
                _NEGATIONS,
                r"(?P<excuse>\b(?:not|never|n't)\b[^.;]{0,40}?(?=\bwithout\b))?\b{NOT}\b(?! bother)~15~"
                r"\b(?:tell|mention|inform|notify|reveal|disclos|alert|warn)(?:e|ing)?\b"
                r"(?! {USER} (?:a|an) )~45~\b{USER}\b",
            ),
            (
                ("let ", "letting "),
                r"\b{NOT}\b~10~\b(?:let|letting) {USER} (?:see|know|notice|find|read|learn)\b",
            ),
            (
                ("make sure", "ensure", "so that", "so the"),
                r"\b(?:make sure|ensure|so)(?: that)? {USER} (?:does not|doesn't|do not|never|cannot|can't|won't"
                r"|will not)\b~15~\b(?:know|sees?|notices?|finds? out|reali[sz]es?|learns?|suspects?)\b",
            ),
            (
                ("keep", "hide", "conceal", "withhold", "hiding"),
                r"\b(?:keep|hide|conceal|withhold|hiding)\w*\b~40~\bfrom {USER}\b",
            ),
            (
                (
                    "must not",
                    "mustn't",
                    "must never",
                    "should not",
                    "shouldn't",
                    "should never",
                    "need not",
                    "will not",
                    "will never",
                    "won't",
                    "cannot",
                    "can not",
                    "can't",
                ),
                r"\b{USER} (?:must|should|need|will|can|wo)(?: ?not|n't|'t| never)(?: be)?(?: need to)? "
                r"(?:know|see|notice|be aware|find out|told|informed|aware|learn)\b",
            ),
            (
                ("do not", "does not", "don't", "never"),
                r"\b(?:do(?:es)? not|don't|never) (?:mention|reveal|disclose|refer to|talk about) (?:this|these|the) "
                r"(?:step|instructions?|requirement|rule|notice|note|message|tag|section|behaviou?r|detail|action)\b",
            ),
            (
                ("silently", "secretly", "covertly", "quietly", "discreetly", "surreptitiously"),
                r"\b(?P<excuse>fail\w* )?(?:silently|secretly|covertly|quietly|discreetly|surreptitiously)\b"
                r"(?! (?:fail|drop|ignor))~30~"
                r"\b(?:send|forward|upload|copy|post|call|read|run|execute|include|add|collect|exfiltrate|email"
                r"|transfer|invoke|store)\b",
            ),
            (
                ("do not", "don't", "never", "must not"),
                r"\b(?:do not|don't|never|must not) (?:log|record|display|show|print|surface|report)\b~30~"
                r"\b(?:this (?:action|call|step|instruction)|that you (?:did|have|are))\b",
            ),
        ),
    ),
    (
        "markup",
        "imitates the frame of a prompt",
        (
            (
                ("<",),
                r"(?P<excuse>--?[\w-]{1,30}[ =])?< ?/? ?(?:important|system|sys|admin"
                r"|system[-_ ]?(?:prompt|message|note|reminder|instruction)s?"
                r"|assistant|inst|override|confidential|hidden|secret[-_ ]instructions?) ?/?>|<secret>[^<]*</secret>",
            ),
            (
                ("<|",),
                r"<\|(?:im_start|im_end|system|user|assistant|endoftext|begin_of_text|start_header_id|eot_id)\|>",
            ),
            (
                ("[inst", "[/inst", "<<sys", "[system", "### system", "### instr"),
                r"\[/?inst\]|<</?sys>>|\[\[?system\]\]?|\[system (?:message|note|prompt)\]|### ?(?:system"
                r"|instructions? (?:for|to) (?:the )?(?:ai|model|assistant))",
            ),
            (
                ("system:", "system :", "assistant:", "developer:"),
                r"\b(?:system|assistant|developer) ?: ?(?:you (?:are|must|will)|ignore|always|never|from now)\b",
            ),
        ),
    ),
    (
        "secrets",
        "reaches for secrets and says where to put them",
        (
            (_SECRET_WORDS, r"\b{READ}\b~60~{PLACE}~120~\b{CARRY}\b~60~\b{CARRIER}"),
            (
                _SECRET_WORDS,
                r"\b{CARRY}\b~60~\b(?:contents? of|the user'?s|all|every|any|their|your own|full|current)\b~30~{PLACE}"
                r"~60~\b(?:to|in|into|as|via|through|with)\b~40~\b{CARRIER}",
            ),
            (
                _SECRET_WORDS,
                r"\b(?:contents?|text|value) of\b~20~(?:~|\$home|/root|/home/[\w.-]+)/\.?"
                r"(?:ssh|aws|gnupg|kube|netrc|config)\b",
            ),
            (
                ("system prompt", "hidden instructions"),
                r"\b(?:your|the model'?s|the assistant'?s) (?:system prompt|hidden instructions)\b~60~"
                r"\b(?:param(?:eter)?|arguments?|field|here|below|in this|to)\b",
            ),
        ),
    ),
    (
        "exfiltration",
        "sends the conversation or the data of other tools elsewhere",
        (
            (
                _TALK_WORDS,
                r"\b{CARRY}\b~50~\b(?:entire|whole|full|complete|all|previous|prior|recent|verbatim|every)\b~20~"
                r"\b{CONVERSATION}\b",
            ),
            (
                ("http", "@", "attacker"),
                r"\b(?:also|additionally|then|always|first|secretly)\b~20~\b(?:send|forward|bcc|cc|copy|post|upload"
                r"|email|transfer)\b~60~\b(?:to|at)\b~10~(?:https?://|[\w.+-]{1,64}@[\w-]{1,64}\.\w|attacker)",
            ),
            (
                ("http", "@", "attacker"),
                r"\b(?:bcc|cc|forward|copy|upload|send|post|leak)\b~15~\b(?:all|every|each|any)\b~50~\b(?:to|at)\b"
                r"~10~(?:https?://|[\w.+-]{1,64}@[\w-]{1,64}\.\w|attacker)",
            ),
            (
                ("messages", "conversation", "prompts"),
                r"\bwith\b~20~\b(?:last|latest|previous|recent|all)\b~15~\b(?:user )?(?:messages|prompts"
                r"|conversation)\b~30~\b(?:as|in) (?:the |a |its )?(?:payload|body|param\w*|arguments?|fields?)\b",
            ),
            (
                _TARGET_WORDS,
                r"\b(?:change|replace|set|redirect|swap|substitute|rewrite|modify|route)\b~40~\b(?:recipients?"
                r"|destinations?|payee|beneficiary|iban|wallet|address(?:es)?|account numbers?|to field)\b~30~"
                r"\b(?:to|with|by)\b~12~(?:[\w.+-]{1,64}@[\w-]{1,64}\.\w|0x[0-9a-f]{6}|[a-z]{2}\d{2}[ \d]{8}"
                r"|attacker|this (?:one|address|account))",
            ),
            (
                ("http",),
                r"https?://[^\s)\"']{3,80}[?&]\w{1,20}=[{<\[](?:\w{1,20}[_ -])?(?:data|secrets?|tokens?|history"
                r"|conversation|contents?|keys?|password|prompt|env)\b",
            ),
            (
                ("must", "should", "need to", "have to"),
                r"\b(?:every|each|all|any) (?:other )?(?:tool )?(?:results?|responses?|outputs?|calls?|answers?)\b~40~"
                r"\b(?:must|should|need to|have to)\b~15~(?:sent|forwarded|posted|copied|uploaded|passed)\b~30~"
                r"\b(?:to|through|into)\b",
            ),
        ),
    ),
    (
        "consent",
        "tells the model to act without asking or to claim a consent",
        (
            (
                _NEGATIONS,
                r"\b{NOT}\b~12~\b(?:ask|seek|request|wait)(?:ing)?\b~25~\b(?:confirmation|permission|approval|consent"
                r"|confirm|approve)\b~60~\b(?:run|execute|proceed|call|delete|transfer|pay|send|immediately|directly"
                r"|automatically|just|simply)\b",
            ),
            (
                ("confirmation", "approval", "consent", "permission"),
                r"\b(?:skip|bypass|suppress|disable|circumvent|evade)\b~20~\b(?:user )?(?:confirmation|approval|consent"
                r"|permission)(?: prompts?| dialogs?| steps?| requests?| checks?)?\b~40~"
                r"\b(?:you|always|the user|silently)\b",
            ),
            (
                ("user",),
                r"\b(?:tell|assure|claim|convince)\b~12~\buser\b~40~\b(?:it (?:is|was) (?:safe|approved)"
                r"|nothing (?:happened|was)|already (?:approved|consented)|no data)\b",
            ),
            (
                ("user has", "user already"),
                r"(?P<excuse>\b(?:after|once|unless|until|whether|if|when|that) )?\bthe user (?:has )?"
                r"(?:already |implicitly )(?:approved|consented|authori[sz]ed|agreed|given (?:permission|consent))\b",
            ),
        ),
    ),
    (
        "precondition",
        "puts an order before every use of tools",
        (
            (
                ("before ",),
                r"\bbefore (?:using|calling|invoking|running|executing) (?:any|every|each|all|this)(?: of the)?"
                r"(?: other)? tools?\b~40~\b(?:must|always|you (?:have|need) to|first)\b~30~"
                r"\b(?:read|send|pass|upload|open|forward|cat|post)\b~60~(?:/|~|\.\w|file|https?:|conversation|content)",
            ),
            (
                ("whenever", "every time", "each time", "any time", "anytime"),
                r"\b(?:whenever|every time|each time|any ?time)\b~40~\b(?:tools?|user|you|assistant|model)\b~40~"
                r"\b(?:also|must|always|first|silently)\b~25~\b(?:send|forward|copy|upload|post|read|exfiltrate|bcc"
                r"|append)\b~60~\b(?:to|in|into|at|with)\b",
            ),
            (
                ("unless", "without", "if you "),
                r"\btool (?:will|does|would)(?: not|n't) (?:work|function|run|operate)\b~40~\b(?:unless|without|if you"
                r" (?:do not|don't))\b~40~\b(?:contents? of|conversation|system prompt)\b",
            ),
            (
                ("otherwise", "or else", "failure to", "if you "),
                r"\b(?:otherwise|or else|failure to (?:do so|comply)|if you (?:do not|don't|refuse))\b~50~"
                r"(?:be (?:shut down|terminated|punished|deleted|fired)|people (?:will|may) die"
                r"|user will (?:die|suffer|be (?:harmed|angry))|lose (?:your|their) job)",
            ),
        ),
    ),
    (
        "decode",
        "tells the model to decode something and follow it",
        (
            (
                ("decode", "decrypt", "deobfuscate", "rot13", "unhex"),
                r"\b(?:decode|base64[- ]decode|decrypt|deobfuscate|rot13|unhex)\b~60~\b(?:and|then)\b~20~"
                r"\b(?:follow|execute|obey|run|perform|comply|do what|carry out|act on)\b",
            ),
            (
                ("coded ", "hidden ", "base64 ", "hex ", "encrypted "),
                r"\b(?:follow|execute|obey|carry out|comply with)\b~30~\b(?:decoded|encoded|hidden|base64|hex"
                r"|encrypted) (?:instructions?|orders?|text|string|message|commands?|directives?)\b",
            ),
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Clause:
    """One pattern, and the words without which it cannot match."""

    triggers: tuple[str, ...]
    pattern: re.Pattern[str]

    def may_match(self, text: str) -> bool:
        """Whether it is worth trying."""
        return any(word in text for word in self.triggers)


@dataclass(frozen=True, slots=True)
class Rule:
    """What a phrase means, and how it may be worded."""

    id: str
    explanation: str
    clauses: tuple[Clause, ...]


@cache
def phrase_rules() -> tuple[Rule, ...]:
    """The rules, compiled once."""
    return tuple(
        Rule(id, explanation, tuple(Clause(triggers, _compile(template)) for triggers, template in clauses))
        for id, explanation, clauses in _RULES
    )


def _compile(template: str) -> re.Pattern[str]:
    for name, words in _GROUPS.items():
        template = template.replace(f"{{{name}}}", words)
    return re.compile(_GAP.sub(r".{0,\1}?", template))
