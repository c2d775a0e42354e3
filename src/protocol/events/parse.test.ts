import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { anyRoomVersion, canonicalValue } from '../../../test/protocol/arbitrary.ts';
import { draftFor } from '../../../test/protocol/drafts.ts';
import { cpuTime } from '../../../test/support/clocks/cpu-time.ts';
import { newSigningKey } from '../../../test/support/inputs/signing-key.ts';
import { runs } from '../../../test/support/inputs/thoroughness.ts';
import { MatrixError } from '../errors.ts';
import { parseJson } from '../json/index.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import { getRoomVersion, type RoomVersion, roomVersions } from '../room-versions.ts';
import { buildEvent } from './build.ts';
import { checkIntegrity } from './integrity.ts';
import { claimedEventId, receivePdu } from './parse.ts';

const parsePdu = (json: JsonValue, version: RoomVersion) => receivePdu(json, version).event;
const signer = { serverName: 'example.org', key: newSigningKey('1') };
const badJson = { name: 'MatrixError', errcode: 'M_BAD_JSON' };
const tooLarge = { name: 'MatrixError', errcode: 'M_TOO_LARGE' };

function pduOf(version: RoomVersion): JsonObject {
  return buildEvent(draftFor(version), version, signer).event.pdu;
}

/** Parses JSON text and keeps the notation of its numbers, as events require. */
function written(text: string): JsonValue {
  return parseJson(text, { numbers: 'as written' });
}

for (const [id, version] of roomVersions) {
  suite(`receivePdu: format of room version ${id}`, () => {
    const pdu = pduOf(version);
    const refuses = (changes: JsonObject, error: object = badJson) =>
      assert.throws(() => parsePdu({ ...pdu, ...changes }, version), error, JSON.stringify(changes));
    const accepts = (changes: JsonObject) => parsePdu({ ...pdu, ...changes }, version);

    test('requires all mandatory fields', () => {
      const mandatory = [
        'type',
        'sender',
        'content',
        'depth',
        'origin_server_ts',
        'room_id',
        'hashes',
        'signatures',
        'auth_events',
        'prev_events',
      ];
      for (const key of mandatory) refuses({ [key]: undefined });
      if (version.eventId === 'origin') refuses({ event_id: undefined });
    });

    test('requires the right types of fields', () => {
      for (const key of ['content', 'hashes', 'signatures']) {
        for (const value of [null, [], 'text', 1, written('1.0')]) refuses({ [key]: value });
      }
      for (const value of [null, 1, {}, []]) refuses({ state_key: value });
      for (const value of [null, 1, {}, [], '', '@', 'alice', '@a\0:example.org']) {
        refuses({ sender: value });
        refuses({ room_id: value });
      }
      for (const value of [null, '5', true, {}]) {
        refuses({ depth: value });
        refuses({ origin_server_ts: value });
        refuses({ auth_events: value });
        refuses({ prev_events: value });
      }
      for (const value of [null, 1, 'text', []]) {
        assert.throws(() => parsePdu(value, version), badJson);
      }
    });

    test('accepts historical user ids', () => {
      for (const sender of ['@:example.org', '@Älice B:example.org', '@a:[::1]:8448']) {
        assert.equal(accepts({ sender }).sender, sender);
      }
    });

    test('accepts only numbers that the room version allows', () => {
      for (const number of [-1, 0.5]) refuses({ depth: number });
      for (const number of ['1.0', '1e3', '1.5']) {
        refuses({ depth: written(number) });
        refuses({ origin_server_ts: written(number) });
      }
      const huge = written('9223372036854775807');
      if (version.strictCanonicalJson) {
        refuses({ depth: huge });
        refuses({ content: { float: 0.5 } });
        refuses({ content: { float: written('1.0') } });
        refuses({ 'org.example.top': [written('-0')] });
      } else {
        assert.equal(accepts({ depth: huge }).depth, Number.MAX_SAFE_INTEGER);
        assert.equal(accepts({ origin_server_ts: huge }).originServerTs, Number.MAX_SAFE_INTEGER);
        refuses({ depth: written('99223372036854775807') });
        assert.ok(accepts({ content: { float: written('1.0'), half: 0.5 } }));
      }
    });

    test('accepts only references in the format of the room version, at most ten auth and twenty previous events', () => {
      const reference = version.eventReferences === 'pairs' ? ['$a:b', { sha256: 'x' }] : '$a:b';
      const inOtherFormat = version.eventReferences === 'pairs' ? '$a:b' : ['$a:b', { sha256: 'x' }];
      for (const key of ['auth_events', 'prev_events']) {
        for (const value of [inOtherFormat, 1, null, 'no sigil', [], [1, {}], `$${'x'.repeat(255)}`]) {
          refuses({ [key]: [value] });
        }
      }
      assert.deepEqual(accepts({ auth_events: Array(10).fill(reference) }).authEventIds.length, 10);
      assert.deepEqual(accepts({ prev_events: Array(20).fill(reference) }).prevEventIds.length, 20);
      refuses({ auth_events: Array(11).fill(reference) });
      refuses({ prev_events: Array(21).fill(reference) });
    });

    test('accepts only room ids in the format of the room version', () => {
      const hash = '!Nhcu5BS-UMnFX7hBVfVSoXiD7OgH6iRT-xyIuqDnpYQ';
      const hashed = version.roomId === 'create event';
      assert.equal(accepts({ room_id: hashed ? hash : '!a:b' }).roomId, hashed ? hash : '!a:b');
      refuses({ room_id: hashed ? '!a:b' : hash });
    });

    test('enforces the size limits of the room version', () => {
      refuses({ content: { body: 'x'.repeat(65_536) } }, tooLarge);
      for (const key of ['type', 'state_key']) {
        assert.ok(accepts({ [key]: 'x'.repeat(255) }));
        refuses({ [key]: 'x'.repeat(256) }, tooLarge);
      }
      const sender = `@${'é'.repeat(200)}:example.org`;
      if (version.fieldLimits === 'bytes') refuses({ sender }, tooLarge);
      else assert.equal(accepts({ sender }).sender, sender);
    });

    test('drops unsigned, and keeps and hashes unknown fields', () => {
      const event = accepts({ unsigned: { age: 1, prev_content: 'lie' }, 'org.example.top': [1] });
      assert.equal('unsigned' in event.pdu, false);
      assert.deepEqual(event.pdu['org.example.top'], [1]);
      const received = receivePdu({ ...pdu, unsigned: { age: 0.5 } }, version);
      assert.equal(received.hashMatches, true);
      assert.equal(receivePdu({ ...pdu, 'org.example.top': 1 }, version).hashMatches, false);
    });
  });
}

test('receivePdu refuses deep nesting and lone surrogates, and takes __proto__ as an ordinary key', () => {
  const version = getRoomVersion('12')!;
  const pdu = pduOf(version);
  const deep = parseJson(`${'{"a":'.repeat(2000)}1${'}'.repeat(2000)}`, { maxDepth: 5000 });
  assert.throws(() => parsePdu({ ...pdu, content: { deep } }, version), badJson);
  assert.throws(() => parsePdu({ ...pdu, content: { a: '\ud800' } }, version), badJson);
  assert.throws(() => parsePdu({ ...pdu, type: '\ud800' }, version), badJson);
  const proto = parseJson('{"__proto__":{"type":"x"}}');
  assert.deepEqual(parsePdu({ ...pdu, content: proto }, version).content, proto);
  assert.throws(() => parsePdu(proto, version), badJson);
});

test('receivePdu takes the room id of a version 12 create event from its event id, not from room_id', () => {
  const version = getRoomVersion('12')!;
  const claimed = { ...pduOf(version), type: 'm.room.create', state_key: '' };
  const event = parsePdu(claimed, version);
  assert.equal(event.roomId, `!${event.eventId.slice(1)}`);
});

suite('receivePdu: hostile events', () => {
  /** Valid events with up to three fields replaced by other values. */
  const mutated = anyRoomVersion.chain((version) => {
    const pdu = pduOf(version);
    const hostile = fc.oneof(
      canonicalValue,
      fc.jsonValue().map((value) => value as JsonValue),
    );
    const keys = [...Object.keys(pdu), 'state_key', 'event_id', 'redacts', 'unsigned', '__proto__', 'toJSON'];
    return fc.dictionary(fc.constantFrom(...keys), hostile, { maxKeys: 3 }).map((changes) => ({
      version,
      json: { ...pdu, ...changes },
    }));
  });

  test('returns an event that checkIntegrity can check, or throws a MatrixError', () => {
    const key = { key: signer.key.publicKey, validUntilTs: Number.MAX_SAFE_INTEGER };
    fc.assert(
      fc.property(mutated, ({ version, json }) => {
        try {
          const outcome = checkIntegrity(receivePdu(json, version), () => key, 2_000_000).outcome;
          assert.ok(['ok', 'redact', 'reject'].includes(outcome));
        } catch (error) {
          assert.ok(error instanceof MatrixError, String(error));
        }
      }),
      { numRuns: runs(3000) },
    );
  });

  test('claimedEventId returns the event id that receivePdu computes, or undefined if there is none', () => {
    fc.assert(
      fc.property(mutated, ({ version, json }) => {
        const claimed = claimedEventId(json, version);
        try {
          assert.equal(claimed, parsePdu(json, version).eventId);
        } catch (error) {
          assert.ok(error instanceof MatrixError, String(error));
        }
      }),
    );
    const version = getRoomVersion('6')!;
    const text = '{"content":{"x":1.5},"type":"m.test"}';
    assert.equal(
      claimedEventId(written(text), version),
      claimedEventId(written('{"content":{},"type":"m.test"}'), version),
    );
    for (const malformed of [null, [], { type: { toString: 1 } }])
      assert.equal(claimedEventId(malformed, version), undefined);
  });

  test('throws a MatrixError for JSON that is not an event', () => {
    fc.assert(
      fc.property(anyRoomVersion, fc.jsonValue(), (version, json) => {
        claimedEventId(json as JsonValue, version);
        assert.throws(() => parsePdu(json as JsonValue, version), MatrixError);
      }),
    );
  });

  test('returns an event or throws a MatrixError for changed bytes, in bounded time', () => {
    const took = cpuTime(() =>
      fc.assert(
        fc.property(
          anyRoomVersion,
          fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 5 }),
          (version, mutations) => {
            const bytes = Buffer.from(JSON.stringify(pduOf(version)));
            for (const [index, byte] of mutations) bytes[index % bytes.length] = byte;
            try {
              receivePdu(parseJson(bytes, { numbers: 'as written' }), version);
            } catch (error) {
              assert.ok(error instanceof MatrixError, String(error));
            }
          },
        ),
        { numRuns: runs(2000) },
      ),
    );
    assert.ok(took < 20_000, `${took} ms`);
  });
});
