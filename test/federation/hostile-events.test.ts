/**
 * Attacks by hostile servers, and the tests that try them:
 *
 * | class                                                                       | test |
 * | --------------------------------------------------------------------------- | ---- |
 * | malformed events beside valid ones; numbers, keys, depths, surrogates       | here, `malformed-events` |
 * | unauthorized and forged events, events of other rooms, second create events | here |
 * | state resets, forks from the past, rejected events as auth events           | here, `src/room-federation/hostile-answers` |
 * | event id collisions, maximum depth, reference cycles                        | here, `hostile-answers` |
 * | expensive ACL patterns                                                      | here, `src/protocol/globs` |
 * | endless missing events and auth chains, slow answers                        | here, `hostile-answers` |
 * | forged receipts, typing, presence, device lists, to-device messages         | `hostile-edus`, `src/composition/edus-of-others` |
 * | slow, endless, compressed, broken responses; redirects; content types       | `hostile-http-responses`, `hostile-join-responses` |
 * | slow, endless, compressed requests                                          | `hostile-http-requests` |
 * | false templates and responses of handshakes                                 | `hostile-event-templates`, `hostile-join-responses`, `hostile-invite-responses` |
 * | invalid joins, invites and knocks; floods of invites                        | `hostile-handshake-requests`, `hostile-invites`, `handshake-limits` |
 * | stripped state of invites and knocks                                        | `hostile-invites`, `hostile-http-responses` |
 * | requests about rooms that the server is not in                              | `room-request-access`, `history-visibility` |
 */
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { type BuiltEvent, type JsonObject, stateMapKey } from '../../src/protocol/index.ts';
import { eventually } from '../clients/eventually.ts';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { ScriptedMember } from '../support/other-servers/scripted-member.ts';
import type { ScriptedServer } from '../support/other-servers/scripted-server.ts';
import { SeveralServers } from '../support/other-servers/several-servers.ts';
import { type ClientEventJson, enc, type TestClient } from '../support/users/test-client.ts';

const mallory = '@mallory:evil.test';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('PDUs of a hostile server in a room', () => {
    let several: SeveralServers;
    let evil: ScriptedServer;
    let anna: TestClient;
    let roomId: string;
    let hostile: ScriptedMember;
    before(async () => {
      ({ several, peer: evil, anna } = await SeveralServers.withScriptedServer(kind, 'evil.test'));
    });
    after(() => several.stop());
    beforeEach(async () => {
      roomId = await anna.createRoom({ preset: 'public_chat', room_version: '11', name: 'Hall' });
      hostile = await ScriptedMember.join(evil, 'a.test', roomId, mallory);
    });

    const timeline = async (room = roomId) => {
      const query = { dir: 'b', limit: 100 };
      const { chunk } = await anna.do('GET', `/rooms/${enc(room)}/messages`, undefined, query);
      return chunk as ClientEventJson[];
    };
    const texts = async () =>
      (await timeline())
        .filter(({ type }) => type === 'm.room.message')
        .map(({ content }) => content['body'])
        .reverse();
    const waitForMessage = (body: string) => eventually(body, async () => (await texts()).includes(body));
    const state = async (room = roomId) => {
      const { body } = await anna.call('GET', `/rooms/${enc(room)}/state`);
      const events = body as unknown as ClientEventJson[];
      return events.map((event) => `${event.type} ${event.state_key} ${event.event_id}`).sort();
    };
    /** Sends events that must have no effect, and then a message that must arrive. */
    async function assertNoEffect(...attempts: readonly BuiltEvent[]): Promise<void> {
      const stateBefore = await state();
      for (const { event } of attempts) await hostile.send(event.pdu);
      const marker = `after ${attempts[0]?.event.eventId}`;
      await hostile.say(marker);
      await waitForMessage(marker);
      const ids = new Set(attempts.map(({ event }) => event.eventId));
      assert.deepEqual(
        (await timeline()).filter((event) => ids.has(event.event_id)),
        [],
      );
      assert.deepEqual(await state(), stateBefore);
    }
    const member = (userId: string, membership: string) =>
      hostile.build({ type: 'm.room.member', content: { membership }, stateKey: userId });
    const levels = (users: Record<string, number>) => ({ users: { [anna.id]: 100, ...users } });
    const setLevels = async (users: Record<string, number>) => {
      const eventId = await anna.setState(roomId, 'm.room.power_levels', levels(users));
      await eventually('the levels', () => hostile.received.some((event) => event.eventId === eventId));
    };
    const topic = (text: string, change: Parameters<ScriptedMember['build']>[1] = {}) =>
      hostile.build({ type: 'm.room.topic', content: { topic: text }, stateKey: '' }, change);

    it('rejects PDUs whose sender lacks the power level or the membership', async () => {
      const takeover = hostile.build({
        type: 'm.room.power_levels',
        content: { users: { [mallory]: 100 } },
        stateKey: '',
      });
      await assertNoEffect(takeover);
      await assertNoEffect(
        member(anna.id, 'ban'),
        member('@ghost:evil.test', 'join'),
        member('@x:a.test', 'join'),
      );
      await assertNoEffect(topic('mine'));
      const rules = { type: 'm.room.join_rules', content: { join_rule: 'public', x: 1 }, stateKey: '' };
      await assertNoEffect(hostile.build(rules));
      // A rejected event authorizes no other event.
      const relyingOnRejected = topic('mine', {
        authEventIds: [...topic('x').event.authEventIds.slice(0, 2), takeover.event.eventId],
      });
      await assertNoEffect(relyingOnRejected);
      // An event is rejected even if its auth events omit the power levels.
      const keys = [stateMapKey('m.room.create', ''), stateMapKey('m.room.member', mallory)];
      const withoutPowerLevels = topic('mine', {
        authEventIds: keys.map((key) => hostile.state.get(key)!.eventId),
      });
      await assertNoEffect(withoutPowerLevels);
      await assertNoEffect(topic('mine', { authEventIds: [] }));
    });

    it('rejects PDUs of a sender of another server, and of a sender who is not in the room', async () => {
      const forged = hostile.message('I, Anna', { sender: anna.id });
      const outcomes = await hostile.send(forged.event.pdu);
      assert.equal(typeof outcomes[forged.event.eventId]?.error, 'string');
      const stranger = hostile.message('from an unknown sender', { sender: '@nobody:evil.test' });
      await assertNoEffect(forged, stranger);
      const signatures = { 'a.test': forged.event.pdu['signatures'] as JsonObject };
      await hostile.send({ ...forged.event.pdu, signatures });
      await assertNoEffect();
    });

    it('rejects a second create event, PDUs without prev_events, and PDUs that refer or belong to another room', async () => {
      const create = { type: 'm.room.create', content: { room_version: '11' }, stateKey: '' };
      await assertNoEffect(
        hostile.build(create, { authEventIds: [], prevEventIds: [], depth: 1 }),
        hostile.build(create),
        hostile.message('without prev_events', { prevEventIds: [] }),
      );
      const otherRoom = await ScriptedMember.join(
        evil,
        'a.test',
        await anna.createRoom({ preset: 'public_chat', room_version: '11' }),
        mallory,
      );
      const eventOfOtherRoom = otherRoom.message('of another room');
      otherRoom.advanceTo(eventOfOtherRoom);
      await otherRoom.send(eventOfOtherRoom.event.pdu);
      await hostile.send({ ...eventOfOtherRoom.event.pdu, room_id: roomId });
      await assertNoEffect(
        hostile.message('with prev_events of another room', { prevEventIds: [otherRoom.latest.eventId] }),
        hostile.message('with auth events of another room', {
          authEventIds: eventOfOtherRoom.event.authEventIds,
        }),
      );
      const secret = await anna.createRoom({ preset: 'private_chat' });
      const outcomes = await hostile.send(
        hostile.message('into the private room', { roomId: secret }).event.pdu,
      );
      await assertNoEffect();
      assert.ok(
        !JSON.stringify(await timeline(secret)).includes('into the private room'),
        JSON.stringify(outcomes),
      );
    });

    it('keeps a demotion when the demoted user forks the room from before the demotion', async () => {
      await setLevels({ [mallory]: 50 });
      const allowed = await anna.setState(roomId, 'm.room.topic', { topic: 'allowed' });
      await eventually('the topic', () => hostile.latest.eventId === allowed);
      const past = hostile.latest;
      const pastState = new Map(hostile.state);
      await setLevels({});
      const present = hostile.latest;
      const presentState = new Map(hostile.state);
      hostile.latest = past;
      for (const [key, event] of pastState) hostile.state.set(key, event);
      const lateTopic = topic('late');
      const lateBan = member(anna.id, 'ban');
      hostile.latest = present;
      for (const [key, event] of presentState) hostile.state.set(key, event);
      await assertNoEffect(lateTopic, lateBan);
      // An event that merges the two forks does not change the state either.
      const forkIds = [lateTopic.event.eventId, hostile.latest.eventId];
      const stateBefore = await state();
      const merging = hostile.message('tied', { prevEventIds: forkIds, depth: hostile.latest.depth + 5 });
      await hostile.send(merging.event.pdu);
      await waitForMessage('tied');
      assert.deepEqual(await state(), stateBefore);
    });

    it('ignores PDUs of a banned user, even those with prev_events from before the ban', async () => {
      const earlyMessage = hostile.message('sent before');
      await anna.do('POST', `/rooms/${enc(roomId)}/ban`, { user_id: mallory });
      const stateBefore = await state();
      await hostile.send(earlyMessage.event.pdu);
      hostile.advanceTo(earlyMessage);
      await hostile.send(hostile.message('after the ban').event.pdu);
      const room = roomId;
      roomId = await anna.createRoom({ preset: 'public_chat', room_version: '11' });
      hostile = await ScriptedMember.join(evil, 'a.test', roomId, mallory);
      await hostile.say('elsewhere');
      await waitForMessage('elsewhere');
      roomId = room;
      assert.deepEqual(await texts(), []);
      assert.deepEqual(await state(), stateBefore);
    });

    it('accepts events with maximum and zero depth without making the room unusable', async () => {
      const deep = hostile.message('deep', { depth: Number.MAX_SAFE_INTEGER });
      await hostile.send(deep.event.pdu);
      await waitForMessage('deep');
      hostile.advanceTo(deep);
      await anna.say(roomId, 'still here');
      await hostile.send(hostile.message('at the same depth', { depth: Number.MAX_SAFE_INTEGER }).event.pdu);
      await waitForMessage('at the same depth');
      const shallow = hostile.message('shallow', { depth: 0 });
      await hostile.send(shallow.event.pdu);
      await waitForMessage('shallow');
      assert.deepEqual((await texts()).sort(), ['at the same depth', 'deep', 'shallow', 'still here']);
    });

    it('in room version 1, keeps the first of several events with one id, and drops events that refer to themselves or each other', async () => {
      roomId = await anna.createRoom({ preset: 'public_chat', room_version: '1' });
      hostile = await ScriptedMember.join(evil, 'a.test', roomId, mallory);
      const first = hostile.message('first', { eventId: '$same:evil.test' });
      const second = hostile.message('second', { eventId: '$same:evil.test' });
      await hostile.send(first.event.pdu);
      await waitForMessage('first');
      await hostile.send(second.event.pdu);
      const eventIdOfAnna = await anna.say(roomId, 'own');
      const stolen = hostile.message('stolen', { eventId: eventIdOfAnna });
      const foreign = hostile.message('stolen', { eventId: '$x:a.test' });
      await hostile.send(stolen.event.pdu, foreign.event.pdu);
      const oneId = '$one:evil.test';
      const otherId = '$other:evil.test';
      const cycle = [
        hostile.message('one', { eventId: oneId, prevEventIds: [otherId] }),
        hostile.message('other', { eventId: otherId, prevEventIds: [oneId] }),
      ];
      const self = hostile.message('self', { eventId: '$self:evil.test', prevEventIds: ['$self:evil.test'] });
      await hostile.send(...cycle.map(({ event }) => event.pdu), self.event.pdu);
      hostile.advanceTo(first);
      await hostile.say('last');
      await waitForMessage('last');
      assert.deepEqual((await texts()).sort(), ['first', 'last', 'own']);
    });

    it('processes other events without waiting for missing prev_events and auth_events', async () => {
      // The hostile server accepts requests for missing events and never answers them.
      for (const start of ['POST', 'GET']) {
        evil.on(`${start} /_matrix/federation/v1/`, () => new Promise<never>(() => undefined));
      }
      const missing = Array.from({ length: 20 }, (_, n) => `$${'x'.repeat(42)}${'abcdefghijklmnopqrst'[n]}`);
      await hostile.send(
        hostile.message('with unknown prev_events', { prevEventIds: missing }).event.pdu,
        hostile.message('with unknown auth events', { authEventIds: missing.slice(0, 10) }).event.pdu,
      );
      await anna.say(roomId, 'unaffected');
      await hostile.say('complete');
      await waitForMessage('complete');
      assert.deepEqual(await texts(), ['unaffected', 'complete']);
      evil.on('GET /_matrix/federation/v1/', () => [404, {}]);
      evil.on('POST /_matrix/federation/v1/', () => [404, {}]);
    });

    it('accepts events and answers requests in a room whose server ACL has 1,000 expensive patterns', async () => {
      await setLevels({ [mallory]: 100 });
      const pattern = (n: number) => `${'*a'.repeat(20)}*${n}`;
      const deny = Array.from({ length: 1_000 }, (_, n) => pattern(n));
      const acl = hostile.build({
        type: 'm.room.server_acl',
        content: { allow: ['*'], deny: [...deny, 5, null, { a: 1 }] },
        stateKey: '',
      });
      await hostile.send(acl.event.pdu);
      hostile.advanceTo(acl);
      await hostile.say('admitted');
      await waitForMessage('admitted');
      const long = `${'a'.repeat(200)}.test`;
      evil.on(`GET /_matrix/federation/v1/make_join`, () => [404, {}]);
      const path = `/_matrix/federation/v1/make_join/${enc(roomId)}/${enc(`@x:${long}`)}?ver=11`;
      assert.equal((await evil.request('a.test', 'GET', path)).status, 403);
    });
  });
});
