import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { manualClock } from '../../../../test/support/clocks/manual-clock.ts';
import { newSigningKey } from '../../../../test/support/inputs/signing-key.ts';
import { runs } from '../../../../test/support/inputs/thoroughness.ts';
import { SignedRoom } from '../../../../test/support/rooms/signed-room.ts';
import { plainCaches } from '../../../../test/support/servers/caches.ts';
import { systemRandomness } from '../../../kernel/randomness.ts';
import { TimeSlices } from '../../../kernel/time-slices.ts';
import { buildEvent, type JsonObject, type JsonValue, signEvent } from '../../../protocol/index.ts';
import { MissingKeys } from '../../checking/missing-keys.ts';
import { Verifier } from '../../checking/verifier.ts';
import { HandshakeFailure } from '../handshake.ts';
import type { SendJoinResponse } from '../peers.ts';
import { buildFromTemplate, graphReferences } from '../templates/event-from-template.ts';
import { checkSendJoinResponse } from './send-join-response.ts';

const clock = manualClock();
const ours = { serverName: 'a.test', key: newSigningKey('a') };
const theirs = { serverName: 'b.test', key: newSigningKey('b') };
const stranger = { serverName: 'c.test', key: newSigningKey('c') };
const knownSigners = [ours, theirs];
const verifier = new Verifier({
  clock,
  missing: new MissingKeys(clock, plainCaches(clock)),
  keys: {
    findAll: async () => (serverName, keyId) => {
      const signer = knownSigners.find(
        (server) => server.serverName === serverName && server.key.keyId === keyId,
      );
      return signer && { key: signer.key.publicKey, validUntilTs: clock.now() + 1e9 };
    },
  },
});
const userId = '@anna:a.test';

/** Creates a room of the remote server, and functions that build the join and the response, and check the response. */
function handshake({ version = '11', content = {} }: { version?: string; content?: JsonObject } = {}) {
  const room = new SignedRoom(version, theirs, clock.now());
  const draft = {
    roomId: room.roomId,
    type: 'm.room.member',
    sender: userId,
    stateKey: userId,
    content: { membership: 'join', ...content },
  };
  const parts = { signer: ours, clock, randomness: systemRandomness };
  const join = () => {
    const { event } = room.membershipTemplate(userId, 'join', content);
    return buildFromTemplate(graphReferences(event as JsonObject, room.version), draft, room.version, parts);
  };
  const answer = (more: Partial<SendJoinResponse> = {}): SendJoinResponse => {
    const { state, auth_chain: authChain } = room.stateAndAuthChain();
    return { state, authChain, event: undefined, membersOmitted: false, serversInRoom: [], ...more };
  };
  const check = (
    response: SendJoinResponse,
    { isAuthorised = false, sentJoin = join(), stored = [] as string[] } = {},
  ) =>
    checkSendJoinResponse(verifier, response, {
      server: 'b.test',
      roomId: room.roomId,
      version: room.version,
      sentJoin,
      isAuthorised,
      stored: async () => new Set(stored),
      slices: new TimeSlices(clock),
    });
  return { room, join, answer, check };
}

const assertRefused = (checked: Promise<unknown>, problem: RegExp) =>
  assert.rejects(checked, (error) => error instanceof HandshakeFailure && problem.test(error.message));

describe('checkSendJoinResponse checks the response to a join', () => {
  for (const version of ['1', '3', '6', '11', '12']) {
    it(`accepts a valid response in room version ${version}`, async () => {
      const { answer, check, join, room } = handshake({ version });
      const sentJoin = join();
      const entry = await check(answer(), { sentJoin });
      assert.equal(entry.event.json, sentJoin.json);
      assert.equal(entry.state.length, room.state.size);
      assert.equal(entry.partial, undefined);
    });
  }

  it('leaves out events that cannot be verified', async () => {
    const { answer, check, room } = handshake();
    const { event } = new SignedRoom('11', stranger, clock.now()).build({
      type: 'm.room.name',
      stateKey: '',
      sender: '@x:c.test',
      content: {},
    });
    const { state } = answer();
    const entry = await check(answer({ state: [...state, event.pdu, 5, null, 'event'] }));
    assert.equal(entry.state.length, room.state.size);
  });

  it('marks the state as partial when keys cannot be fetched, and as complete when events are invalid', async () => {
    const { answer, check, room } = handshake();
    const carl = '@carl:c.test';
    const { event } = room.setState('m.room.member', { membership: 'join' }, carl, carl);
    const { state } = answer();
    const otherState = state.filter((pdu) => (pdu as JsonObject)['state_key'] !== carl);
    const unsigned = { ...event, pdu: { ...event.pdu, signatures: {} } };
    const signed = signEvent(unsigned, stranger).event.pdu;
    const entry = await check(answer({ state: [...otherState, signed] }));
    assert.deepEqual(entry.partial, { servers: ['b.test', 'c.test'], from: 'b.test', membersAt: 0 });
    assert.equal(entry.state.length, otherState.length);
    const bad = await check(answer({ state: [...otherState, unsigned.pdu] }));
    assert.equal(bad.partial, undefined);
    assert.equal(bad.state.length, otherState.length);
  });

  it('leaves out events that depend on unverifiable events, unless the unverifiable events are stored already', async () => {
    const { answer, check, room } = handshake();
    const dora = '@dora:b.test';
    const { eventId } = room.setState('m.room.member', { membership: 'join' }, dora, dora).event;
    room.setState('m.room.topic', { topic: 'by Dora' }, '', dora);
    room.setState('m.room.member', { membership: 'leave' }, dora, dora);
    const unsigned = (pdu: JsonValue) => ({ ...(pdu as JsonObject), signatures: {} });
    const chain = [...answer().authChain, unsigned(room.events.get(eventId)!.event.pdu)];
    const entry = await check(answer({ authChain: chain }));
    const acceptedTypes = entry.state.map(({ event }) => event.type);
    assert.equal(acceptedTypes.includes('m.room.topic'), false);
    assert.equal(entry.state.length, room.state.size - 2);
    const withStoredEvent = await check(answer({ authChain: chain }), { stored: [eventId] });
    assert.equal(withStoredEvent.state.length, room.state.size);
  });

  it('accepts a state without members only if the response names another server in the room', async () => {
    const { answer, check, room } = handshake();
    const state = answer().state.filter((pdu) => (pdu as JsonObject)['type'] !== 'm.room.member');
    const entry = await check(answer({ state, membersOmitted: true, serversInRoom: ['b.test', 'd.test'] }));
    assert.deepEqual(entry.partial, { servers: ['b.test', 'd.test'], from: 'b.test' });
    assert.equal(entry.state.length, room.state.size - 1);
    await assertRefused(check(answer({ state, membersOmitted: true })), /names no other server/);
  });

  it('refuses a state that is incomplete, contradictory or of another room', async () => {
    const { answer, check, room } = handshake();
    const without = (type: string) => answer().state.filter((pdu) => (pdu as JsonObject)['type'] !== type);
    await assertRefused(check(answer({ state: [] })), /no create event/);
    await assertRefused(check(answer({ state: without('m.room.create') })), /no create event/);
    await assertRefused(check(answer({ state: without('m.room.join_rules') })), /not allowed/);
    await assertRefused(
      check(answer({ state: [...answer().state, room.say('hello').event.pdu] })),
      /not state/,
    );
    await assertRefused(
      check(answer({ state: [...answer().state, answer().state[0]!] })),
      /two events for one key/,
    );
    const otherRoom = new SignedRoom('11', theirs, clock.now());
    const topic = otherRoom.setState('m.room.topic', { topic: 'x' }).event.pdu;
    await assertRefused(check(answer({ state: [...answer().state, topic] })), /another room/);
    await assertRefused(check(answer({ authChain: [topic] })), /another room/);
  });

  it('refuses a state with forged events', async () => {
    const { answer, check } = handshake();
    const changed = (type: string, change: JsonObject) =>
      answer().state.map((pdu) =>
        (pdu as JsonObject)['type'] === type ? { ...(pdu as JsonObject), ...change } : pdu,
      );
    const unsigned = { signatures: {} };
    await assertRefused(check(answer({ state: changed('m.room.create', unsigned) })), /no create event/);
    await assertRefused(check(answer({ state: changed('m.room.join_rules', unsigned) })), /not allowed/);
    const otherSender = { sender: '@evil:b.test' };
    await assertRefused(check(answer({ state: changed('m.room.create', otherSender) })), /no create event/);
  });

  it('refuses a create event with another room version', async () => {
    const { room, join, answer } = handshake();
    const older = { ...room.version, id: '10' };
    const expected = {
      server: 'b.test',
      roomId: room.roomId,
      version: older,
      sentJoin: join(),
      isAuthorised: false,
      stored: async () => new Set<string>(),
      slices: new TimeSlices(clock),
    };
    await assertRefused(checkSendJoinResponse(verifier, answer(), expected), /another version/);
  });

  it('refuses a state that does not allow the join', async () => {
    const { room, check, answer } = handshake();
    room.setState('m.room.join_rules', { join_rule: 'invite' });
    await assertRefused(check(answer()), /not allowed/);
    room.setState('m.room.member', { membership: 'invite' }, userId);
    assert.ok(await check(answer()));
    room.setState('m.room.member', { membership: 'ban' }, userId);
    await assertRefused(check(answer()), /not allowed/);
  });

  describe('checkSendJoinResponse for a join to a restricted room', () => {
    const authoriser = '@creator:b.test';
    const restricted = () => {
      const fixture = handshake({ content: { join_authorised_via_users_server: authoriser } });
      fixture.room.setState('m.room.join_rules', { join_rule: 'restricted', allow: [] });
      const sentJoin = fixture.join();
      const check = (event: JsonObject | undefined) =>
        fixture.check(fixture.answer({ event }), { sentJoin, isAuthorised: true });
      return { sentJoin, check };
    };

    it('takes from the returned join only the signature of the authorising server', async () => {
      const { sentJoin, check } = restricted();
      const signed = signEvent(sentJoin.event, theirs).event.pdu;
      const returned = {
        ...signed,
        unsigned: { age: 5 },
        signatures: { ...(signed['signatures'] as JsonObject), 'c.test': { 'ed25519:c': 'x' } },
      };
      const { event } = await check(returned);
      assert.equal(event.event.eventId, sentJoin.event.eventId);
      assert.deepEqual(Object.keys(event.event.pdu['signatures'] as JsonObject).sort(), ['a.test', 'b.test']);
      assert.equal(event.event.pdu['unsigned'], undefined);
    });

    it('refuses the returned join when it is another event, or lacks a valid signature of the authorising server', async () => {
      const { sentJoin, check } = restricted();
      const signed = signEvent(sentJoin.event, theirs).event.pdu;
      const byStranger = signEvent(sentJoin.event, { ...stranger, serverName: 'b.test' }).event.pdu;
      await assertRefused(check(undefined), /was not returned unchanged with the signature/);
      await assertRefused(check(sentJoin.event.pdu), /was not returned unchanged with the signature/);
      await assertRefused(check({ ...signed, depth: 1 }), /was not returned unchanged with the signature/);
      await assertRefused(
        check({ ...signed, signatures: 'x' }),
        /was not returned unchanged with the signature/,
      );
      await assertRefused(
        check({ ...signed, content: { membership: 'join' } }),
        /was not returned unchanged with the signature/,
      );
      await assertRefused(check(byStranger), /is invalid/);
      const wrong = { ...signed, signatures: { 'b.test': { [theirs.key.keyId]: 'A'.repeat(86) } } };
      await assertRefused(check(wrong), /is invalid/);
      const draft = { roomId: sentJoin.event.roomId, type: 'm.room.name', sender: authoriser, content: {} };
      const otherEvent = buildEvent(
        { ...draft, stateKey: '', depth: 1, originServerTs: 1, authEventIds: [], prevEventIds: [] },
        sentJoin.event.version,
        theirs,
      );
      await assertRefused(check(otherEvent.event.pdu), /was not returned unchanged with the signature/);
    });
  });

  it('refuses arbitrary responses with HandshakeFailure, without other errors', async () => {
    const { answer, check } = handshake();
    const pdu = answer().state[0] as JsonObject;
    const anything = fc.oneof(
      fc.jsonValue().map((value) => value as JsonValue),
      fc
        .dictionary(fc.constantFrom(...Object.keys(pdu), 'unsigned', '__proto__'), fc.jsonValue(), {
          maxKeys: 3,
        })
        .map((changes) => ({ ...pdu, ...changes }) as JsonValue),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(anything, { maxLength: 5 }),
        fc.array(anything, { maxLength: 5 }),
        async (state, authChain) => {
          await assert.rejects(check(answer({ state, authChain })), HandshakeFailure);
        },
      ),
      { numRuns: runs(300) },
    );
  });
});
