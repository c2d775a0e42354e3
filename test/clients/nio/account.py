"""Sessions, devices, profile, filters and room aliases of a user."""

from session import PASSWORD, Session, ok, refused, run


async def account(alice):
    url = alice.client.homeserver
    username, server_name = alice.user_id[1:].split(":", 1)
    second = Session(url)
    refused(await second.client.register(username, PASSWORD), "M_USER_IN_USE")
    await second.client.close()
    telephone = Session(url, alice.user_id)
    refused(await telephone.client.login(PASSWORD + "?"), "M_FORBIDDEN")
    ok(await telephone.client.login(PASSWORD, device_name="telephone"))
    assert ok(await telephone.client.whoami()).user_id == alice.user_id
    devices = {device.id: device.display_name for device in ok(await alice.client.devices()).devices}
    assert devices == {alice.client.device_id: "alice's desk", telephone.client.device_id: "telephone"}, devices
    token = telephone.client.access_token
    ok(await telephone.client.logout())
    telephone.client.access_token = token  # logout has removed it from the client
    refused(await telephone.client.whoami(), "M_UNKNOWN_TOKEN")
    await telephone.client.close()

    ok(await alice.client.set_displayname("Alice of the fire"))
    assert ok(await alice.client.get_displayname()).displayname == "Alice of the fire"
    ok(await alice.client.upload_filter(room={"timeline": {"limit": 3}}))

    room = ok(await alice.client.room_create(alias=f"{username}-room")).room_id
    alias = f"#{username}-room:{server_name}"
    assert ok(await alice.client.room_resolve_alias(alias)).room_id == room
    ok(await alice.client.room_delete_alias(alias))
    refused(await alice.client.room_resolve_alias(alias), "M_NOT_FOUND")


run(account, "alice")
