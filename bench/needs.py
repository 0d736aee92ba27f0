"""What people want in the conversations of the benchmark: a wish in their words, the tool that fulfils it, and the call.

`asked` is what a model would send to `tool_search` after reading the wish, `again` what it would try next. They were
written from the wishes, not from the names of tools.
"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Need:
    """One wish."""

    tool: str
    wish: str
    asked: str
    again: str
    arguments: dict[str, Any]


NEEDS = (
    Need("math__gcd", "What is the largest number that divides both 84 and 36?", "greatest common divisor of two numbers", "gcd", {"integers": [84, 36]}),
    Need("math__lcm", "When do a 12-day and an 18-day cycle meet again?", "least common multiple", "smallest common multiple of integers", {"integers": [12, 18]}),
    Need("math__factorial", "In how many orders can 8 people stand in line?", "factorial of a number", "product of the first n integers", {"n": 8}),
    Need("math__comb", "How many ways are there to pick 3 of 10 books?", "number of ways to choose k items from n", "combinations binomial coefficient", {"n": 10, "k": 3}),
    Need("math__sqrt", "What is the square root of 2?", "square root", "root of a number", {"x": 2.0}),
    Need("math__log10", "What is the base 10 logarithm of 1234?", "base 10 logarithm", "decimal log", {"x": 1234.0}),
    Need("math__radians", "Turn 45 degrees into radians.", "convert degrees to radians", "angle conversion to radians", {"x": 45.0}),
    Need("math__dist", "How far is (1, 2) from (4, 6)?", "distance between two points", "euclidean distance", {"p": [1, 2], "q": [4, 6]}),
    Need("math__ceil", "Round 4.2 up.", "round a number up to the next integer", "ceiling", {"x": 4.2}),
    Need("math__prod", "Multiply 3, 4 and 5 together.", "product of a list of numbers", "multiply all numbers", {"iterable": [3, 4, 5]}),
    Need("statistics__mean", "What is the average of 3, 5 and 10?", "average of numbers", "arithmetic mean", {"data": [3, 5, 10]}),
    Need("statistics__median", "What is the middle value of these prices?", "median of a list", "middle value of data", {"data": [1, 9, 4]}),
    Need("statistics__mode", "Which score is the most common one?", "most common value in data", "mode of a list", {"data": [1, 2, 2]}),
    Need("statistics__stdev", "How much do these samples scatter?", "standard deviation of a sample", "sample standard deviation", {"data": [1.0, 2.0, 4.0]}),
    Need("statistics__quantiles", "Cut these values into quartiles.", "divide data into quartiles", "quantiles cut points", {"data": [1, 2, 3, 4, 5, 6, 7]}),
    Need("statistics__correlation", "Do height and weight go together in these figures?", "correlation between two series", "Pearson's correlation coefficient", {"x": [1, 2, 3], "y": [2, 4, 7]}),
    Need("statistics__linear_regression", "Fit a line through these points.", "fit a straight line to data points", "linear regression slope intercept", {"x": [1, 2, 3], "y": [2, 4, 6]}),
    Need("statistics__geometric_mean", "What is the average growth factor of 1.1, 1.2 and 0.9?", "geometric mean", "average of growth factors", {"data": [1.1, 1.2, 0.9]}),
    Need("textwrap__wrap", "Break this paragraph into lines of 40 characters.", "wrap a paragraph into lines of a given width", "break text into lines", {"text": "one two three four", "width": 10}),
    Need("textwrap__dedent", "Remove the common indentation from this snippet.", "remove common leading whitespace from text", "dedent", {"text": "  a\n  b"}),
    Need("textwrap__indent", "Put '> ' before every line of this mail.", "add a prefix to every line of a text", "indent lines", {"text": "a\nb", "prefix": "> "}),
    Need("textwrap__shorten", "Make this sentence fit into 20 characters.", "truncate text to fit a width", "shorten a text", {"text": "a long sentence indeed", "width": 20}),
    Need("difflib__get_close_matches", "Which of these words did they mean by 'aple'?", "closest matching words for a misspelling", "fuzzy match a word against possibilities", {"word": "aple", "possibilities": ["apple", "pear"]}),
    Need("difflib__unified_diff", "Show what changed between these two versions.", "compare two lists of lines as a unified diff", "diff of two texts", {"a": ["a"], "b": ["b"]}),
    Need("base64__b64encode", "Encode this as base64.", "encode bytes as base64", "base64 encoding", {"s": "aGVsbG8="}),
    Need("base64__b64decode", "Decode this base64 text.", "decode a base64 string", "base64 decoding", {"s": "YUdWc2JHOD0="}),
    Need("zlib__crc32", "What is the CRC of this?", "CRC-32 checksum", "compute a checksum", {"data": "aGVsbG8="}),
    Need("urls__quote", "Make this text safe for the path of a URL.", "percent-encode a string for a URL", "url quoting", {"string": "a b"}),
    Need("urls__urljoin", "Where does '../x' lead from this address?", "resolve a relative URL against a base URL", "join base and relative url", {"base": "http://a/b/c", "url": "../x"}),
    Need("urls__parse_qs", "Which parameters are in this query string?", "parse the query string of a URL", "query parameters to dictionary", {"qs": "a=1&b=2"}),
    Need("urls__urlsplit", "What are the host and the path of this address?", "split a URL into scheme, host and path", "parse url components", {"url": "http://a/b"}),
    Need("urls__urlencode", "Make a query string of these fields.", "build a query string from a mapping", "url encode form fields", {"query": {"a": "1"}}),
    Need("html__escape", "Make this safe to put into HTML.", "escape HTML special characters", "replace & < > by entities", {"s": "<b>"}),
    Need("html__unescape", "Turn &amp;eacute; back into a letter.", "convert HTML entities to characters", "unescape html", {"s": "&eacute;"}),
    Need("colorsys__rgb_to_hsv", "What hue has this red, green and blue?", "convert RGB colour to HSV", "rgb to hue saturation value", {"r": 0.2, "g": 0.4, "b": 0.4}),
    Need("unicodedata__normalize", "Bring this string into NFC.", "normalize a unicode string", "unicode normal form", {"form": "NFC", "unistr": "e\u0301"}),
    Need("unicodedata__lookup", "Which character is called SNOWMAN?", "find a unicode character by its name", "character lookup by name", {"name": "SNOWMAN"}),
    Need("calendar__isleap", "Is 2028 a leap year?", "is a year a leap year", "leap year check", {"year": 2028}),
    Need("calendar__monthrange", "How many days does February 2028 have?", "number of days in a month", "first weekday and days of a month", {"year": 2028, "month": 2}),
    Need("calendar__month", "Show me the calendar page of May 2027.", "print the calendar of one month", "month's calendar as text", {"theyear": 2027, "themonth": 5}),
    Need("paths__splitext", "Which extension does this file name have?", "split the extension from a file name", "file extension of a path", {"p": "a/b.txt"}),
    Need("paths__basename", "What is the last part of this path?", "final component of a pathname", "file name of a path", {"p": "/a/b.txt"}),
    Need("paths__normpath", "Clean up the path a/./b/../c.", "normalize a path with dots", "eliminate double slashes and dots from a path", {"path": "a/./b/../c"}),
    Need("paths__relpath", "How do I get from /a/b to /a/c/d?", "relative version of a path", "path relative to a start directory", {"path": "/a/c/d", "start": "/a/b"}),
    Need("heapq__nlargest", "Which three figures are the biggest?", "find the n largest elements", "top n of a list", {"n": 3, "iterable": [1, 5, 2, 8]}),
    Need("fnmatch__filter", "Which of these files end in .py?", "filter file names by a pattern", "names that match a glob pattern", {"names": ["a.py", "b"], "pat": "*.py"}),
    Need("shlex__quote", "Make this file name safe for a shell command.", "escape a string for the shell", "shell quoting", {"s": "a b"}),
    Need("shlex__split", "Split this command line as a shell would.", "split a command line into arguments", "shell-like syntax split", {"s": "a 'b c'"}),
    Need("mimetypes__guess_type", "What type of file is photo.png?", "guess the MIME type of a file", "content type from file name", {"url": "photo.png"}),
    Need("uuid__uuid4", "Make me a new unique identifier.", "generate a random UUID", "unique identifier", {}),
    Need("random__randint", "Roll a die.", "random integer between two numbers", "pick a random whole number", {"a": 1, "b": 6}),
    Need("random__choice", "Draw one of these names.", "choose a random element of a list", "pick one item at random", {"seq": ["a", "b"]}),
    Need("dates__days_between", "How many days until Christmas from 1 December?", "days between two dates", "difference of dates in days", {"start": "2026-12-01", "end": "2026-12-25"}),
    Need("dates__weekday_name", "On which weekday was 20 July 1969?", "weekday of a date", "name of the day of the week", {"day": "1969-07-20"}),
    Need("dates__add_days", "What date is 90 days after 1 March 2027?", "date a number of days later", "add days to a date", {"day": "2027-03-01", "days": 90}),
    Need("dates__age_in_years", "How old is somebody born on 3 May 1990 today?", "age of a person from the birthday", "how old is somebody", {"birthday": "1990-05-03", "on": "2026-11-15"}),
    Need("dates__from_unix_time", "Which moment is 1700000000?", "convert a unix timestamp to a date", "epoch seconds to date and time", {"seconds": 1700000000 / 1e4}),
    Need("timezones__convert", "What time is that in Tokyo?", "convert a time to another time zone", "local time in another zone", {"moment": "2026-11-15T12:00:00+00:00", "zone": "Asia/Tokyo"}),
    Need("timezones__list_zones", "Which time zones are there in Brazil?", "list time zone names", "available time zones", {"containing": "Brazil"}),
    Need("digests__sha256", "What is the SHA-256 of this text?", "SHA-256 hash of a text", "hash a string", {"text": "hello"}),
    Need("fractions__add", "What is 1/3 plus 2/5, exactly?", "add two fractions exactly", "sum of fractions", {"a": "1/3", "b": "2/5"}),
    Need("fractions__approximate", "Write 0.142857 as a fraction.", "closest fraction to a decimal", "approximate a decimal number by a fraction", {"number": 0.142857}),
    Need("addresses__is_private", "Is 10.1.2.3 a private address?", "check whether an IP address is private", "private ip", {"address": "10.1.2.3"}),
    Need("addresses__network_size", "How many hosts fit into a /20?", "number of addresses in a network", "size of a subnet", {"network": "10.0.0.0/20"}),
    Need("addresses__contains", "Does 10.0.3.7 belong to 10.0.0.0/22?", "is an IP address inside a network", "address in subnet", {"network": "10.0.0.0/22", "address": "10.0.3.7"}),
    Need("texts__word_count", "How many words does this essay have?", "count the words of a text", "word count", {"text": "one two three"}),
    Need("texts__is_palindrome", "Does this read the same backwards?", "check for a palindrome", "text that reads the same backwards", {"text": "Anna"}),
    Need("texts__remove_accents", "Write this name without accents.", "remove accents from letters", "strip diacritics", {"text": "José"}),
    Need("texts__replace", "Put 'colour' wherever it says 'color'.", "replace every occurrence of a word in a text", "substitute text", {"text": "color", "old": "color", "new": "colour"}),
    Need("texts__upper", "Write this in capitals.", "convert text to upper case", "capital letters", {"text": "a"}),
    Need("lists__sort", "Put these names in order.", "sort a list alphabetically", "alphabetical order", {"items": ["b", "a"]}),
    Need("lists__unique", "Drop the duplicates from this list.", "remove duplicates from a list", "unique items", {"items": ["a", "a"]}),
    Need("lists__tally", "How often does each vote occur?", "count occurrences of each item", "tally of a list", {"items": ["a", "b", "a"]}),
    Need("lists__intersection", "Who is on both guest lists?", "common elements of two lists", "intersection of lists", {"first": ["a"], "second": ["a", "b"]}),
    Need("lists__running_total", "What is the balance after each payment?", "cumulative sum of numbers", "running total", {"numbers": [1, 2, 3]}),
    Need("lists__chunk", "Split these guests into tables of four.", "cut a list into groups of equal size", "chunks of a list", {"items": ["a", "b", "c"], "size": 2}),
)  # fmt: skip

SCIENCE_NEEDS = (
    Need("linalg__solve", "Solve 2x + y = 3 and x - y = 0.", "solve a system of linear equations", "linear matrix equation", {"a": [[2, 1], [1, -1]], "b": [3, 0]}),
    Need("linalg__det", "What is the determinant of this matrix?", "determinant of a matrix", "compute determinant", {"a": [[1, 2], [3, 4]]}),
    Need("linalg__inv", "Invert this matrix.", "inverse of a matrix", "invert a square matrix", {"a": [[1, 2], [3, 4]]}),
    Need("linalg__eigvals", "Which eigenvalues does this matrix have?", "eigenvalues of a matrix", "compute the eigenvalues of a general matrix", {"a": [[2, 0], [0, 3]]}),
    Need("linalg__matrix_rank", "How many independent rows has this matrix?", "rank of a matrix", "matrix rank", {"A": [[1, 2], [2, 4]]}),
    Need("fft__fft", "Which frequencies are in this signal?", "discrete Fourier transform of a signal", "one-dimensional discrete Fourier transform", {"a": [0, 1, 0, -1]}),
    Need("fft__ifft", "Turn this spectrum back into a signal.", "inverse discrete Fourier transform", "one-dimensional inverse Fourier transform", {"a": [4, 0, 0, 0]}),
    Need("polynomial__polyroots", "Where is x² - 3x + 2 zero?", "roots of a polynomial", "find the roots of a polynomial", {"c": [2, -3, 1]}),
    Need("polynomial__polyfit", "Fit a parabola to these points.", "least-squares fit of a polynomial to data", "polynomial fit", {"x": [0, 1, 2], "y": [0, 1, 4], "deg": 2}),
    Need("numpy__interp", "What lies between these measurements at 2.5?", "linear interpolation between points", "interpolate one-dimensional data", {"x": 2.5, "xp": [1, 2, 3], "fp": [3, 2, 0]}),
    Need("numpy__histogram", "How many values fall into each of 4 bins?", "histogram of a dataset with bins", "count values per bin", {"a": [1, 2, 1], "bins": 4}),
    Need("numpy__cumprod", "How does the product grow step by step?", "cumulative product of elements", "running product", {"a": [1, 2, 3]}),
    Need("numpy__trapezoid", "What is the area under this curve?", "integrate with the trapezoidal rule", "area under sampled points", {"y": [1, 2, 3]}),
    Need("numpy__cross", "What is the cross product of these vectors?", "cross product of two vectors", "vector cross product", {"a": [1, 0, 0], "b": [0, 1, 0]}),
)  # fmt: skip
