"""Runs Debian's CAS server with one user: grace, whose password is hopper.

Arguments: the port, the prefix of the URLs of services that users may log in to, and a folder for its database.
"""

import re
import sys
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import django
from django.conf import settings

port, service, folder = sys.argv[1:]
settings.configure(
    SECRET_KEY="a key of the tests",
    DEBUG=False,
    ALLOWED_HOSTS=["localhost"],
    INSTALLED_APPS=[
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.sessions",
        "django.contrib.messages",
        "django.contrib.staticfiles",
        "cas_server",
    ],
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
    ],
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "APP_DIRS": True,
            "OPTIONS": {
                "context_processors": [
                    "django.template.context_processors.request",
                    "django.contrib.auth.context_processors.auth",
                    "django.contrib.messages.context_processors.messages",
                ]
            },
        }
    ],
    ROOT_URLCONF="cas_server.urls",
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": f"{folder}/cas.sqlite"}},
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    STATIC_URL="/static/",
    USE_TZ=True,
    CAS_AUTH_CLASS="cas_server.auth.TestAuthUser",
    CAS_TEST_USER="grace",
    CAS_TEST_PASSWORD="hopper",
    CAS_TEST_ATTRIBUTES={"fullName": "Grace Hopper", "groups": ["navy", "staff"]},
    CAS_COMPONENT_URLS={},
    CAS_NEW_VERSION_HTML_WARNING=False,
)
django.setup()

from cas_server.models import ReplaceAttributName, ServicePattern  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.core.wsgi import get_wsgi_application  # noqa: E402

call_command("migrate", verbosity=0)
pattern = ServicePattern.objects.create(name="Hearth", pattern=f"^{re.escape(service)}", proxy=False)
ReplaceAttributName.objects.create(name="*", service_pattern=pattern)


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class QuietHandler(WSGIRequestHandler):
    def log_message(self, *_args):
        pass


make_server("127.0.0.1", int(port), get_wsgi_application(), Server, QuietHandler).serve_forever()
