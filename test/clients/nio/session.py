"""Users of the server under test, with matrix-nio clients that sync only when a script asks them to."""

import asyncio
import secrets
import sys
import time

import nio

PASSWORD = "correct horse battery staple"
TIMEOUT_SECONDS = 120


def ok(response):
    """Returns the response; fails when the server refused or the library could not parse it."""
    assert not isinstance(response, nio.ErrorResponse), f"{type(response).__name__}: {response}"
    return response


def refused(response, code):
    """Fails unless the server refused with this errcode."""
    assert isinstance(response, nio.ErrorResponse) and response.status_code == code, response


class Session:
    """A client and the events that it has received."""

    def __init__(self, url, user=""):
        config = nio.AsyncClientConfig(max_limit_exceeded=0, max_timeouts=0, request_timeout=120)
        self.client = nio.AsyncClient(url, user, config=config)
        self.events = []
        self.left_rooms = set()
        self.client.add_event_callback(lambda room, event: self.events.append((room.room_id, event)), nio.Event)

    @classmethod
    async def of_new_user(cls, url, name):
        session = cls(url)
        username = f"{name}-{secrets.token_hex(5)}"
        ok(await session.client.register(username, PASSWORD, f"{name}'s desk"))
        session.client.user = session.client.user_id
        ok(await session.client.sync(timeout=0))
        return session

    @property
    def user_id(self):
        return self.client.user_id

    async def eventually(self, what, check):
        """Syncs until check() returns something true, and returns that."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while True:
            found = check()
            if found:
                return found
            assert time.monotonic() < deadline, f"{self.user_id} timed out waiting for {what}"
            self.left_rooms |= set(ok(await self.client.sync(timeout=1000)).rooms.leave)

    async def event(self, event_id):
        """Waits until a timeline has the event, and returns it."""
        return await self.eventually(
            event_id, lambda: next((event for _, event in self.events if event.event_id == event_id), None)
        )

    async def send(self, room_id, body, **content):
        """Sends a text message and returns its event id."""
        message = {"msgtype": "m.text", "body": body, **content}
        return ok(await self.client.room_send(room_id, "m.room.message", message)).event_id


def run(script, *names):
    """Runs the script with sessions of new users with these names."""

    async def main():
        url = sys.argv[1]
        sessions = [await Session.of_new_user(url, name) for name in names]
        try:
            await script(*sessions)
        finally:
            for session in sessions:
                await session.client.close()

    asyncio.run(main())
