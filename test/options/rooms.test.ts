import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import {
  type ApiAnswer,
  type ConfigurationOverrides,
  startTestServer,
  type TestServer,
  type TestUser,
} from '../support/servers/server.ts';
import { registerAdmin } from '../support/users/register-admin.ts';

type Content = Readonly<Record<string, unknown>>;
type Event = Readonly<Record<string, unknown>>;

/** Options about rooms, tested on a whole homeserver. */
forSelectedDatabases(import.meta.url, (open) =>
  describe('options of rooms', () => {
    let server: TestServer;
    afterEach(() => server.stop());

    const start = async (config: ConfigurationOverrides) => {
      server = await startTestServer({ database: open.kind, config });
      return { alice: await server.register('alice'), bob: await server.register('bob') };
    };
    const v3 = (path: string) => `/_matrix/client/v3${path}`;
    const create = ({ token }: TestUser, body: Content = {}) =>
      server.api('POST', v3('/createRoom'), { token, body });
    const createRoom = async (user: TestUser, body?: Content) =>
      encodeURIComponent(String(ok(await create(user, body))['room_id']));
    const act = ({ token }: TestUser, roomId: string, action: string, body: Content = {}) =>
      server.api('POST', v3(`/rooms/${roomId}/${action}`), { token, body });
    const state = ({ token }: TestUser, roomId: string, type: string, key = '') =>
      server.api('GET', v3(`/rooms/${roomId}/state/${type}/${key}`), { token });
    const stateOf = async (user: TestUser, roomId: string, type: string, key = '') =>
      ok(await state(user, roomId, type, key));
    const sync = async ({ token }: TestUser, filter: Content = {}) =>
      ok(await server.api('GET', v3('/sync'), { token, query: { filter: JSON.stringify(filter) } }));

    it('creates rooms with the configured version, encryption and power levels [option: default_room_version, encryption_enabled_by_default_for_room_type, default_power_level_content_override.private_chat, default_power_level_content_override.trusted_private_chat, default_power_level_content_override.public_chat]', async () => {
      const presets = ['private_chat', 'trusted_private_chat', 'public_chat'] as const;
      const levels = { private_chat: 7, trusted_private_chat: 8, public_chat: 9 };
      const settingsOfNewRooms = async (alice: TestUser) => {
        const rooms = await Promise.all(presets.map((preset) => createRoom(alice, { preset })));
        return Promise.all(
          rooms.map(async (room) => [
            (await stateOf(alice, room, 'm.room.create'))['room_version'],
            (await state(alice, room, 'm.room.encryption')).status === 200,
            (await stateOf(alice, room, 'm.room.power_levels'))['events_default'],
          ]),
        );
      };
      const configured = await start({
        rooms: {
          default_room_version: '11',
          encryption_enabled_by_default_for_room_type: 'invite',
          default_power_level_content_override: {
            private_chat: { events_default: levels.private_chat },
            trusted_private_chat: { events_default: levels.trusted_private_chat },
            public_chat: { events_default: levels.public_chat },
          },
        },
      });
      assert.deepEqual(await settingsOfNewRooms(configured.alice), [
        ['11', true, 7],
        ['11', true, 8],
        ['11', false, 9],
      ]);
      await server.stop();
      const defaults = await start({ rooms: { encryption_enabled_by_default_for_room_type: 'all' } });
      assert.deepEqual(await settingsOfNewRooms(defaults.alice), Array(3).fill(['10', true, 0]));
    });

    it('merges configured power levels key by key with the power levels of a request, which take precedence', async () => {
      const { alice } = await start({
        rooms: {
          default_power_level_content_override: {
            private_chat: { events: { 'org.example.event': 3 }, ban: 70, kick: 71, redact: null },
          },
        },
      });
      const room = await createRoom(alice, { power_level_content_override: { kick: 72 } });
      const levels = await stateOf(alice, room, 'm.room.power_levels');
      const { ban, kick, redact, events } = levels;
      assert.deepEqual([ban, kick, redact, events], [70, 72, 50, { 'org.example.event': 3 }]);
      const levelsOfPublicRoom = await stateOf(
        alice,
        await createRoom(alice, { preset: 'public_chat' }),
        'm.room.power_levels',
      );
      assert.deepEqual(levelsOfPublicRoom['events'], {
        'm.room.name': 50,
        'm.room.power_levels': 100,
        'm.room.history_visibility': 100,
        'm.room.canonical_alias': 50,
        'm.room.avatar': 50,
        'm.room.tombstone': 100,
        'm.room.server_acl': 100,
        'm.room.encryption': 100,
      });
    });

    it('lets only administrators invite local users [option: block_non_admin_invites]', async () => {
      const { alice, bob } = await start({ rooms: { block_non_admin_invites: true } });
      const room = await createRoom(alice, { preset: 'public_chat' });
      const setState = v3(`/rooms/${room}/state/m.room.member/${bob.userId}`);
      const body = { membership: 'invite' };
      for (const refused of [
        await act(alice, room, 'invite', { user_id: bob.userId }),
        await create(alice, { invite: [bob.userId] }),
        await server.api('PUT', setState, { token: alice.token, body }),
      ]) {
        assert.deepEqual([refused.status, refused.body['errcode']], [403, 'M_FORBIDDEN']);
      }
      const admin = await registerAdmin(server);
      ok(await admin.call('POST', `/join/${room}`, {}));
      const power = { users: { [alice.userId]: 100, [admin.id]: 100 } };
      const levels = v3(`/rooms/${room}/state/m.room.power_levels/`);
      ok(await server.api('PUT', levels, { token: alice.token, body: power }));
      ok(await admin.call('POST', `/rooms/${room}/invite`, { user_id: bob.userId }));
      assert.equal((await stateOf(alice, room, 'm.room.member', bob.userId))['membership'], 'invite');
      // The option covers local users only: the server of a remote user decides whether to accept an invite.
      const elsewhere = await act(alice, room, 'invite', { user_id: '@dora:far.example' });
      assert.notEqual(elsewhere.body['error'], 'Invites have been disabled on this server');
    });

    it('omits profiles from invites and replaces per-room profiles by the global profile when the options are off [option: include_profile_data_on_invite, allow_per_room_profiles]', async () => {
      const displayNames = async (rooms: ConfigurationOverrides['rooms']) => {
        const { alice, bob } = await start({ rooms: rooms ?? {} });
        const room = await createRoom(alice);
        ok(await act(alice, room, 'invite', { user_id: bob.userId }));
        const invitation = await stateOf(alice, room, 'm.room.member', bob.userId);
        const path = v3(`/rooms/${room}/state/m.room.member/${alice.userId}`);
        const body = { membership: 'join', displayname: 'Queen of this room' };
        ok(await server.api('PUT', path, { token: alice.token, body }));
        const memberOfAlice = await stateOf(alice, room, 'm.room.member', alice.userId);
        return [invitation['displayname'], memberOfAlice['displayname']];
      };
      assert.deepEqual(
        await displayNames({ include_profile_data_on_invite: false, allow_per_room_profiles: false }),
        [undefined, 'alice'],
      );
      await server.stop();
      assert.deepEqual(await displayNames({}), ['bob', 'Queen of this room']);
    });

    it('forgets a room when the user leaves, is kicked or is banned [option: forget_rooms_on_leave]', async () => {
      const { alice, bob } = await start({ rooms: { forget_rooms_on_leave: true } });
      for (const how of ['leave', 'kick', 'ban']) {
        const room = await createRoom(alice, { preset: 'public_chat' });
        ok(await act(bob, room, 'join'));
        ok(await (how === 'leave' ? act(bob, room, how) : act(alice, room, how, { user_id: bob.userId })));
        const { rooms } = await sync(bob, { room: { include_leave: true } });
        assert.deepEqual((rooms as Content | undefined)?.['leave'] ?? {}, {}, how);
        assert.equal(
          (await server.api('GET', v3(`/rooms/${room}/messages`), { token: bob.token, query: { dir: 'b' } }))
            .status,
          403,
        );
      }
    });

    it('includes the configured event types in the stripped state of invites and knocks [option: room_prejoin_state.disable_default_event_types, room_prejoin_state.additional_event_types]', async () => {
      const strippedState = async (
        disable_default_event_types: boolean,
        how: 'invite' | 'knock' = 'invite',
      ) => {
        const { alice, bob } = await start({
          rooms: {
            room_prejoin_state: {
              disable_default_event_types,
              additional_event_types: ['org.example.any', ['org.example.one', 'this']],
            },
          },
        });
        const room = await createRoom(alice, {
          name: 'A name',
          initial_state: [
            { type: 'm.room.join_rules', content: { join_rule: 'knock' } },
            { type: 'org.example.any', content: {} },
            { type: 'org.example.any', state_key: 'another', content: {} },
            { type: 'org.example.one', state_key: 'this', content: {} },
            { type: 'org.example.one', state_key: 'not this', content: {} },
          ],
          ...(how === 'invite' ? { invite: [bob.userId] } : undefined),
        });
        if (how === 'knock') {
          ok(await server.api('POST', v3(`/knock/${room}`), { token: bob.token, body: {} }));
        }
        const { rooms } = (await sync(bob)) as {
          rooms: Record<typeof how, Record<string, Record<string, { events: Event[] }>>>;
        };
        const { events } = rooms[how][decodeURIComponent(room)]![`${how}_state`]!;
        return events
          .filter(({ type }) => type !== 'm.room.member')
          .map(({ type, state_key }) => `${type} ${state_key}`.trim())
          .toSorted();
      };
      const additional = ['org.example.any', 'org.example.any another', 'org.example.one this'];
      assert.deepEqual(await strippedState(true), additional);
      await server.stop();
      const defaultTypes = ['m.room.create', 'm.room.join_rules', 'm.room.name'];
      assert.deepEqual(await strippedState(false), [...defaultTypes, ...additional]);
      await server.stop();
      assert.deepEqual(await strippedState(false, 'knock'), [...defaultTypes, ...additional]);
    });

    it('bounds the timeline limit of sync and messages, and excludes rooms from sync [option: filter_timeline_limit, exclude_rooms_from_sync]', async () => {
      const excluded: string[] = [];
      const { alice } = await start({
        sync: { filter_timeline_limit: 3, exclude_rooms_from_sync: excluded },
      });
      const [shown, hidden] = [await createRoom(alice), await createRoom(alice)];
      excluded.push(decodeURIComponent(hidden));
      await server.restart();
      const { rooms } = (await sync(alice, { room: { timeline: { limit: 50 } } })) as {
        rooms: { join: Record<string, { timeline: { events: Event[]; limited: boolean } }> };
      };
      assert.deepEqual(Object.keys(rooms.join), [decodeURIComponent(shown)]);
      const { timeline } = rooms.join[decodeURIComponent(shown)]!;
      assert.deepEqual([timeline.events.length, timeline.limited], [3, true]);
      const query = { dir: 'b', limit: 50 };
      const page = await server.api('GET', v3(`/rooms/${shown}/messages`), { token: alice.token, query });
      assert.equal((page.body['chunk'] as Event[]).length, 3);
    });

    it('accepts any timeline limit when there is no bound (filter_timeline_limit: -1)', async () => {
      const { alice } = await start({ sync: { filter_timeline_limit: -1 } });
      const room = await createRoom(alice);
      for (let i = 0; i < 110; i++) {
        const path = v3(`/rooms/${room}/send/m.room.message/${i}`);
        ok(await server.api('PUT', path, { token: alice.token, body: { msgtype: 'm.text', body: `${i}` } }));
      }
      const { rooms } = (await sync(alice, { room: { timeline: { limit: 110 } } })) as {
        rooms: { join: Record<string, { timeline: { events: Event[] } }> };
      };
      assert.equal(rooms.join[decodeURIComponent(room)]?.timeline.events.length, 110);
      const query = { dir: 'b', limit: 110 };
      const page = await server.api('GET', v3(`/rooms/${room}/messages`), { token: alice.token, query });
      assert.equal((page.body['chunk'] as Event[]).length, 110);
    });
  }),
);

function ok({ status, body, raw }: ApiAnswer): Record<string, unknown> {
  assert.equal(status, 200, raw);
  return body;
}
