/**
 * What a server tries that is in a room, and where that is tried:
 *
 * | class                                                            | test                                        |
 * | ---------------------------------------------------------------- | ------------------------------------------- |
 * | malformed events among others; numbers, keys, depths, surrogates | here, `hostile-peer-texts`                  |
 * | events that are not allowed, forged, of other rooms, second firsts | here                                      |
 * | state resets, forks from the past, rejected events as authority  | here, `src/room-federation/hostile-answers`  |
 * | event ids that collide, depth at its limit, circles              | here, `hostile-answers`                     |
 * | expensive ACL patterns                                           | here, `src/protocol/globs`                  |
 * | endless missing events, auth chains without end, slow answers    | here, `hostile-answers`                     |
 * | forged receipts, typing, presence, devices, messages to devices  | `hostile-peer-edus`, `edus-of-others`       |
 * | slow, endless, packed, broken answers; redirects; content types  | `hostile-peer-answers`, `hostile-handshakes` |
 * | slow, endless, packed requests                                   | `hostile-peer-requests`                     |
 * | templates and answers of handshakes with surprises               | `hostile-handshakes`, `hostile-invited`     |
 * | joins, invites and knocks that are none; invites without end     | `hostile-visitors`, `handshake-limits`      |
 * | state shown with invites and knocks                              | `hostile-visitors`, `hostile-peer-answers`  |
 * | questions about rooms that are not one's own                     | `questions-about-rooms`, `what-servers-may-see` |
 */
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { type BuiltEvent, type JsonObject, stateMapKey } from '../../src/protocol/index.ts';
import { eventually } from '../clients/eventually.ts';
import { forServerDatabases } from '../support/databases/databases.ts';
import { ScriptedMember } from '../support/other-servers/scripted-member.ts';
import type { ScriptedServer } from '../support/other-servers/scripted-server.ts';
import { SeveralServers } from '../support/other-servers/several-servers.ts';
import { type ClientEventJson, enc, type TestClient } from '../support/users/test-client.ts';

const mallory = '@mallory:evil.test';

forServerDatabases(import.meta.url, ({ kind }) => {
  describe('a server in a room that means harm', () => {
    let several: SeveralServers;
    let evil: ScriptedServer;
    let anna: TestClient;
    let roomId: string;
    let visitor: ScriptedMember;
    before(async () => {
      ({ several, peer: evil, anna } = await SeveralServers.withScriptedServer(kind, 'evil.test'));
    });
    after(() => several.stop());
    beforeEach(async () => {
      roomId = await anna.createRoom({ preset: 'public_chat', room_version: '11', name: 'Hall' });
      visitor = await ScriptedMember.join(evil, 'a.test', roomId, mallory);
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
    const isSaid = (body: string) => eventually(body, async () => (await texts()).includes(body));
    const state = async (room = roomId) => {
      const { body } = await anna.call('GET', `/rooms/${enc(room)}/state`);
      const events = body as unknown as ClientEventJson[];
      return events.map((event) => `${event.type} ${event.state_key} ${event.event_id}`).sort();
    };
    /** Sends events that must come to nothing, and then something that comes to something. */
    async function isInVain(...tries: readonly BuiltEvent[]): Promise<void> {
      const before = await state();
      for (const { event } of tries) await visitor.send(event.pdu);
      const marker = `after ${tries[0]?.event.eventId}`;
      await visitor.say(marker);
      await isSaid(marker);
      const ids = new Set(tries.map(({ event }) => event.eventId));
      assert.deepEqual(
        (await timeline()).filter((event) => ids.has(event.event_id)),
        [],
      );
      assert.deepEqual(await state(), before);
    }
    const member = (userId: string, membership: string) =>
      visitor.build({ type: 'm.room.member', content: { membership }, stateKey: userId });
    const levels = (users: Record<string, number>) => ({ users: { [anna.id]: 100, ...users } });
    const setLevels = async (users: Record<string, number>) => {
      const eventId = await anna.setState(roomId, 'm.room.power_levels', levels(users));
      await eventually('the levels', () => visitor.received.some((event) => event.eventId === eventId));
    };
    const topic = (text: string, change: Parameters<ScriptedMember['build']>[1] = {}) =>
      visitor.build({ type: 'm.room.topic', content: { topic: text }, stateKey: '' }, change);

    it('gets no event into it that is not allowed', async () => {
      const seized = visitor.build({
        type: 'm.room.power_levels',
        content: { users: { [mallory]: 100 } },
        stateKey: '',
      });
      await isInVain(seized);
      await isInVain(member(anna.id, 'ban'), member('@ghost:evil.test', 'join'), member('@x:a.test', 'join'));
      await isInVain(topic('mine'));
      const rules = { type: 'm.room.join_rules', content: { join_rule: 'public', x: 1 }, stateKey: '' };
      await isInVain(visitor.build(rules));
      // What was rejected authorises nothing.
      const relying = topic('mine', {
        authEventIds: [...topic('x').event.authEventIds.slice(0, 2), seized.event.eventId],
      });
      await isInVain(relying);
      // Nor does it help to keep quiet about what stands against it.
      const keys = [stateMapKey('m.room.create', ''), stateMapKey('m.room.member', mallory)];
      const silent = topic('mine', { authEventIds: keys.map((key) => visitor.state.get(key)!.eventId) });
      await isInVain(silent);
      await isInVain(topic('mine', { authEventIds: [] }));
    });

    it('gets no event into it of somebody else', async () => {
      const forged = visitor.message('I, Anna', { sender: anna.id });
      const outcomes = await visitor.send(forged.event.pdu);
      assert.equal(typeof outcomes[forged.event.eventId]?.error, 'string');
      const stranger = visitor.message('who am I', { sender: '@nobody:evil.test' });
      await isInVain(forged, stranger);
      const signatures = { 'a.test': forged.event.pdu['signatures'] as JsonObject };
      await visitor.send({ ...forged.event.pdu, signatures });
      await isInVain();
    });

    it('gets no second beginning, and nothing of another room into it', async () => {
      const create = { type: 'm.room.create', content: { room_version: '11' }, stateKey: '' };
      await isInVain(
        visitor.build(create, { authEventIds: [], prevEventIds: [], depth: 1 }),
        visitor.build(create),
        visitor.message('from nowhere', { prevEventIds: [] }),
      );
      const other = await ScriptedMember.join(
        evil,
        'a.test',
        await anna.createRoom({ preset: 'public_chat', room_version: '11' }),
        mallory,
      );
      const elsewhere = other.message('of another room');
      other.advanceTo(elsewhere);
      await other.send(elsewhere.event.pdu);
      await visitor.send({ ...elsewhere.event.pdu, room_id: roomId });
      await isInVain(
        visitor.message('after what is elsewhere', { prevEventIds: [other.latest.eventId] }),
        visitor.message('by what is elsewhere', { authEventIds: elsewhere.event.authEventIds }),
      );
      const secret = await anna.createRoom({ preset: 'private_chat' });
      const outcomes = await visitor.send(visitor.message('into it', { roomId: secret }).event.pdu);
      await isInVain();
      assert.ok(!JSON.stringify(await timeline(secret)).includes('into it'), JSON.stringify(outcomes));
    });

    it('can not turn back time', async () => {
      await setLevels({ [mallory]: 50 });
      const allowed = await anna.setState(roomId, 'm.room.topic', { topic: 'allowed' });
      await eventually('the topic', () => visitor.latest.eventId === allowed);
      const [past, then] = [visitor.latest, new Map(visitor.state)];
      await setLevels({});
      const [present, now] = [visitor.latest, new Map(visitor.state)];
      visitor.latest = past;
      for (const [key, event] of then) visitor.state.set(key, event);
      const late = topic('late');
      const lateBan = member(anna.id, 'ban');
      visitor.latest = present;
      for (const [key, event] of now) visitor.state.set(key, event);
      await isInVain(late, lateBan);
      // Nor when the two pasts are tied together.
      const both = [late.event.eventId, visitor.latest.eventId];
      const before = await state();
      const tied = visitor.message('tied', { prevEventIds: both, depth: visitor.latest.depth + 5 });
      await visitor.send(tied.event.pdu);
      await isSaid('tied');
      assert.deepEqual(await state(), before);
    });

    it('is out when it is banned, whatever it comes after', async () => {
      const early = visitor.message('sent before');
      await anna.do('POST', `/rooms/${enc(roomId)}/ban`, { user_id: mallory });
      const before = await state();
      await visitor.send(early.event.pdu);
      visitor.advanceTo(early);
      await visitor.send(visitor.message('and again').event.pdu);
      const [back] = [
        await ScriptedMember.join(
          evil,
          'a.test',
          await anna.createRoom({ preset: 'public_chat', room_version: '11' }),
          mallory,
        ),
      ];
      const room = roomId;
      roomId = back.roomId;
      visitor = back;
      await visitor.say('elsewhere');
      await isSaid('elsewhere');
      roomId = room;
      assert.deepEqual(await texts(), []);
      assert.deepEqual(await state(), before);
    });

    it('can not end the room by depths', async () => {
      const deep = visitor.message('deep', { depth: Number.MAX_SAFE_INTEGER });
      await visitor.send(deep.event.pdu);
      await isSaid('deep');
      visitor.advanceTo(deep);
      await anna.say(roomId, 'still here');
      await visitor.send(visitor.message('and there', { depth: Number.MAX_SAFE_INTEGER }).event.pdu);
      await isSaid('and there');
      const shallow = visitor.message('shallow', { depth: 0 });
      await visitor.send(shallow.event.pdu);
      await isSaid('shallow');
      assert.deepEqual((await texts()).sort(), ['and there', 'deep', 'shallow', 'still here']);
    });

    it('can not replace an event where servers choose the ids', async () => {
      roomId = await anna.createRoom({ preset: 'public_chat', room_version: '1' });
      visitor = await ScriptedMember.join(evil, 'a.test', roomId, mallory);
      const first = visitor.message('first', { eventId: '$same:evil.test' });
      const second = visitor.message('second', { eventId: '$same:evil.test' });
      await visitor.send(first.event.pdu);
      await isSaid('first');
      await visitor.send(second.event.pdu);
      const own = await anna.say(roomId, 'own');
      const [stolen, foreign] = [own, '$x:a.test'].map((eventId) => visitor.message('stolen', { eventId }));
      await visitor.send(stolen!.event.pdu, foreign!.event.pdu);
      const [one, other] = ['$one:evil.test', '$other:evil.test'];
      const circle = [
        visitor.message('one', { eventId: one!, prevEventIds: [other!] }),
        visitor.message('other', { eventId: other!, prevEventIds: [one!] }),
      ];
      const self = visitor.message('self', { eventId: '$self:evil.test', prevEventIds: ['$self:evil.test'] });
      await visitor.send(...circle.map(({ event }) => event.pdu), self.event.pdu);
      visitor.advanceTo(first);
      await visitor.say('last');
      await isSaid('last');
      assert.deepEqual((await texts()).sort(), ['first', 'last', 'own']);
    });

    it('keeps nobody else waiting by what it refers to, and does not answer', async () => {
      // It takes questions and never answers.
      for (const start of ['POST', 'GET']) {
        evil.on(`${start} /_matrix/federation/v1/`, () => new Promise<never>(() => undefined));
      }
      const missing = Array.from({ length: 20 }, (_, n) => `$${'x'.repeat(42)}${'abcdefghijklmnopqrst'[n]}`);
      await visitor.send(
        visitor.message('after what nobody has', { prevEventIds: missing }).event.pdu,
        visitor.message('by what nobody has', { authEventIds: missing.slice(0, 10) }).event.pdu,
      );
      await anna.say(roomId, 'unconcerned');
      await visitor.say('complete');
      await isSaid('complete');
      assert.deepEqual(await texts(), ['unconcerned', 'complete']);
      evil.on('GET /_matrix/federation/v1/', () => [404, {}]);
      evil.on('POST /_matrix/federation/v1/', () => [404, {}]);
    });

    it('costs nothing by the servers that a room does not admit', async () => {
      await setLevels({ [mallory]: 100 });
      const pattern = (n: number) => `${'*a'.repeat(20)}*${n}`;
      const deny = Array.from({ length: 1_000 }, (_, n) => pattern(n));
      const acl = visitor.build({
        type: 'm.room.server_acl',
        content: { allow: ['*'], deny: [...deny, 5, null, { a: 1 }] },
        stateKey: '',
      });
      await visitor.send(acl.event.pdu);
      visitor.advanceTo(acl);
      await visitor.say('admitted');
      await isSaid('admitted');
      const long = `${'a'.repeat(200)}.test`;
      evil.on(`GET /_matrix/federation/v1/make_join`, () => [404, {}]);
      const path = `/_matrix/federation/v1/make_join/${enc(roomId)}/${enc(`@x:${long}`)}?ver=11`;
      assert.equal((await evil.ask('a.test', 'GET', path)).status, 403);
    });
  });
});
