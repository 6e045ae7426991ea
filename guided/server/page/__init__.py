"""The page at ``/``: the files of ``static``, as they are, and the routes that serve them.

The page asks only the server's public endpoints.  Its modules have one concept each: ``main.js`` puts them together,
``answer.js`` is one answer with its views, ``request.js`` what is sent.  There is no build step and no other origin.
"""

from guided.server.page.routes import page_routes

__all__ = ["page_routes"]
