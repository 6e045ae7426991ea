"""`guided serve`: the whole toolkit behind one address; the extra ``serve``.

* `scheduling`: many texts by one model on one machine, each with its own constraint.  It knows no HTTP.
* `api`: OpenAI's endpoints over it.
* `page`: the page to see it.

Nothing is imported here: what a process needs of the server it imports by name.
"""
