import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { newSigningKey } from '../../../test/support/inputs/signing-key.ts';
import { RemoteRoom } from '../../../test/support/rooms/remote-room.ts';
import { plainCaches } from '../../../test/support/servers/caches.ts';
import { systemClock } from '../../kernel/clock.ts';
import type { JsonObject, JsonValue, ServerKey } from '../../protocol/index.ts';
import type { WantedEventKey } from '../remote-servers.ts';
import { MissingKeys } from './missing-keys.ts';
import { isRefusal, Verifier } from './verifier.ts';

const creator = '@creator:a.example';
const day = 86_400_000;

/** Returns a verifier with the keys of the room's servers, and the list of the keys that it requested. */
function verifierFor(room: RemoteRoom, validity: Partial<ServerKey> = {}) {
  const requestedKeys: (readonly WantedEventKey[])[] = [];
  const verifier = new Verifier({
    clock: systemClock,
    missing: new MissingKeys(systemClock, plainCaches(systemClock)),
    keys: {
      async findAll(wants) {
        requestedKeys.push(wants);
        return (server, keyId) => {
          const key = room.keys.get(server);
          if (key?.keyId !== keyId) return undefined;
          return { key: key.publicKey, validUntilTs: systemClock.now() + day, ...validity };
        };
      },
    },
  });
  return { verifier, requestedKeys };
}

const changed = (pdu: JsonObject, content: JsonObject): JsonObject => ({ ...pdu, content });

describe('Verifier.verify checks events of remote servers', () => {
  it('verifies events in every room version', async () => {
    for (const version of ['1', '2', '3', '4', '6', '9', '10', '11', '12']) {
      const room = new RemoteRoom(creator, { version });
      room.say(creator, 'hello');
      const ids = [...room.events.keys()];
      const { verifier } = verifierFor(room);
      const checked = await verifier.verify(room.version, room.pdus(ids));
      assert.deepEqual(
        checked.map((result) => (isRefusal(result) ? result.error : result.event.eventId)),
        ids,
        `version ${version}`,
      );
      for (const [index, result] of checked.entries())
        if (!isRefusal(result)) assert.equal(result.json, room.get(ids[index]!).json);
    }
  });

  it('looks up the keys of all events together, each key once, with the time of the latest event that needs it', async () => {
    const room = new RemoteRoom(creator);
    const ids = ['@b:b.example', '@c:c.example'].map((userId) => room.join(userId));
    ids.push(room.say('@b:b.example', 'one'), room.say('@b:b.example', 'two'));
    const { verifier, requestedKeys } = verifierFor(room);
    await verifier.verify(room.version, room.pdus(ids));
    const keyOfB = { serverName: 'b.example', keyId: 'ed25519:k' };
    const last = room.get(ids.at(-1)!).event.originServerTs;
    const keyOfC = { ...keyOfB, serverName: 'c.example', validUntil: room.get(ids[1]!).event.originServerTs };
    assert.deepEqual(requestedKeys, [[{ ...keyOfB, validUntil: last }, keyOfC]]);
  });

  it('refuses the invalid events of a list, accepts the valid events, and redacts an event with a wrong hash', async () => {
    const room = new RemoteRoom(creator);
    const stranger = newSigningKey('k');
    const good = room.say(creator, 'good');
    const forged = room.say(creator, 'forged', { key: stranger });
    const redacted = room.say(creator, 'as it was');
    const tooDeep: JsonValue = JSON.parse('['.repeat(1_500) + ']'.repeat(1_500)) as JsonValue;
    const unsigned = { ...room.pdu(good), signatures: {} };
    const { verifier, requestedKeys } = verifierFor(room);
    const checked = await verifier.verify(room.version, [
      room.pdu(forged),
      null,
      room.pdu(good),
      { ...room.pdu(good), content: { deep: tooDeep } },
      changed(room.pdu(redacted), { msgtype: 'm.text', body: 'as it never was' }),
      unsigned,
      { ...room.pdu(good), signatures: { 'a.example': { 'ed25519:k': 5, 'x:y': 'z' } } },
      { ...room.pdu(good), prev_events: Array(21).fill(good) },
    ]);
    assert.deepEqual(
      checked.map((result) => (isRefusal(result) ? 'refused' : result.event.content)),
      [
        'refused',
        'refused',
        { msgtype: 'm.text', body: 'good' },
        'refused',
        {},
        'refused',
        'refused',
        'refused',
      ],
    );
    assert.equal((checked[4] as { event: { eventId: string } }).event.eventId, redacted);
    assert.doesNotMatch((checked[4] as { json: string }).json, /never was/);
    assert.equal(requestedKeys.length, 1);
  });

  it('refuses signatures by keys that were not valid at the time of the event', async () => {
    const room = new RemoteRoom(creator);
    const id = room.say(creator, 'late');
    const { originServerTs } = room.get(id).event;
    const outcome = async (validity: Partial<ServerKey>) => {
      const [result] = await verifierFor(room, validity).verifier.verify(room.version, [room.pdu(id)]);
      return isRefusal(result!) ? 'refused' : 'accepted';
    };
    assert.equal(await outcome({ validUntilTs: originServerTs }), 'accepted');
    assert.equal(await outcome({ validUntilTs: originServerTs - 1 }), 'refused');
    assert.equal(await outcome({ expiredTs: originServerTs - 1 }), 'refused');
  });

  it('accepts more prev_events than the specification allows when reference limits are lifted', async () => {
    const room = new RemoteRoom(creator);
    const tips = Array.from({ length: 25 }, () => room.say(creator, 'x', { prev: [room.newest] }));
    const many = room.pdu(room.say(creator, 'many', { prev: tips }));
    const { verifier } = verifierFor(room);
    const [limited] = await verifier.verify(room.version, [many]);
    const [unlimited] = await verifier.verify(room.version, [many], 'unlimited');
    assert.deepEqual([isRefusal(limited!), isRefusal(unlimited!)], [true, false]);
  });

  it('yields to the event loop while it verifies many events', async () => {
    const room = new RemoteRoom(creator);
    const pdus = Array.from({ length: 300 }, (_, index) => room.pdu(room.say(creator, `${index}`)));
    const { verifier } = verifierFor(room);
    let turns = 0;
    let isDone = false;
    const turn = () => {
      turns++;
      if (!isDone) setImmediate(turn);
    };
    setImmediate(turn);
    await verifier.verify(room.version, pdus);
    isDone = true;
    assert.ok(turns > 3, `${turns} turns of the event loop`);
  });
});
