import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { anyRoomVersion } from '../../../../test/protocol/arbitrary.ts';
import { manualClock } from '../../../../test/support/clocks/manual-clock.ts';
import { newSigningKey } from '../../../../test/support/inputs/signing-key.ts';
import { systemRandomness } from '../../../kernel/randomness.ts';
import {
  type JsonObject,
  type JsonValue,
  MatrixError,
  type RoomVersion,
  receivePdu,
  roomVersions,
} from '../../../protocol/index.ts';
import { buildFromTemplate, graphReferences } from './event-from-template.ts';

const signer = { serverName: 'a.test', key: newSigningKey('a') };
const parts = { signer, clock: manualClock(), randomness: systemRandomness };
const hash = 'A'.repeat(43);

const roomIdOf = (version: RoomVersion) => (version.roomId === 'create event' ? `!${hash}` : '!room:b.test');
/** Returns the fields of Anna's join, which this server does not take from the template. */
const joinIn = (version: RoomVersion) => ({
  roomId: roomIdOf(version),
  type: 'm.room.member',
  sender: '@anna:a.test',
  stateKey: '@anna:a.test',
  content: { membership: 'join' },
});
const referenceIn = (version: RoomVersion, name: string): JsonValue =>
  version.eventReferences === 'pairs'
    ? [`$${name}:b.test`, { sha256: name.padEnd(43, 'A') }]
    : `$${name.padEnd(43, 'A')}`;

describe('buildFromTemplate builds events from event templates', () => {
  for (const [id, version] of roomVersions) {
    it(`takes only the references and the depth from an event template in room version ${id}`, () => {
      const template = {
        type: 'm.room.power_levels',
        room_id: '!other:b.test',
        sender: '@evil:b.test',
        state_key: '',
        content: { users: { '@evil:b.test': 100 } },
        origin_server_ts: 1,
        hashes: { sha256: 'x' },
        event_id: '$theirs:b.test',
        'org.example': true,
        depth: 41,
        prev_events: [referenceIn(version, 'prev')],
        auth_events: [referenceIn(version, 'create'), referenceIn(version, 'levels')],
      };
      const { event, json } = buildFromTemplate(
        graphReferences(template, version),
        joinIn(version),
        version,
        parts,
      );
      const received = receivePdu(JSON.parse(json), version);
      assert.equal(received.hashMatches, true);
      assert.equal(received.event.eventId, event.eventId);
      const { type, sender, stateKey, roomId, content, depth, originServerTs } = event;
      assert.deepEqual(
        { type, sender, stateKey, roomId, content, depth, originServerTs },
        { ...joinIn(version), depth: 41, originServerTs: parts.clock.now() },
      );
      assert.deepEqual(event.pdu['prev_events'], template.prev_events);
      assert.deepEqual(event.pdu['auth_events'], template.auth_events);
      assert.equal(event.pdu['org.example'], undefined);
    });
  }

  it('omits reference hashes that the event template omits', () => {
    const version = roomVersions.get('1')!;
    const prev = referenceIn(version, 'prev');
    const create = ['$create:b.test', {}];
    const template: JsonObject = { depth: 3, prev_events: [prev], auth_events: [create] };
    const { event } = buildFromTemplate(graphReferences(template, version), joinIn(version), version, parts);
    assert.deepEqual(event.pdu['prev_events'], [prev]);
    assert.deepEqual(event.pdu['auth_events'], [create]);
  });

  it('refuses event templates with invalid references or depth', () => {
    const version = roomVersions.get('10')!;
    const validTemplate = { prev_events: [referenceIn(version, 'p')], auth_events: [], depth: 3 };
    const invalidTemplates: JsonObject[] = [
      { ...validTemplate, prev_events: undefined },
      { ...validTemplate, prev_events: {} },
      { ...validTemplate, auth_events: ['create'] },
      { ...validTemplate, auth_events: [['$a:b', { sha256: 'x' }]] },
      { ...validTemplate, auth_events: ['$not-a-hash:b.test'] },
      { ...validTemplate, auth_events: Array(11).fill(referenceIn(version, 'a')) },
      { ...validTemplate, prev_events: Array(21).fill(referenceIn(version, 'a')) },
      { ...validTemplate, depth: '3' },
      { ...validTemplate, depth: -1 },
      { ...validTemplate, depth: undefined },
    ];
    assert.ok(buildFromTemplate(graphReferences(validTemplate, version), joinIn(version), version, parts));
    for (const template of invalidTemplates) {
      assert.throws(
        () => buildFromTemplate(graphReferences(template, version), joinIn(version), version, parts),
        MatrixError,
      );
    }
  });

  it('builds a valid event or refuses, for arbitrary event templates', () => {
    const reference = fc.oneof(
      fc.constantFrom<JsonValue>('$a:b', `$${hash}`, ['$a:b', { sha256: hash }], ['$a:b', {}], [], 1),
      fc.jsonValue().map((value) => value as JsonValue),
    );
    const template = fc.record(
      {
        prev_events: fc.oneof(fc.array(reference, { maxLength: 25 }), reference),
        auth_events: fc.oneof(fc.array(reference, { maxLength: 12 }), reference),
        depth: fc.oneof(fc.nat(), fc.double(), fc.constant(JSON.rawJSON('1e400') as never), reference),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(anyRoomVersion, template, (version, arbitraryTemplate) => {
        try {
          const { json } = buildFromTemplate(
            graphReferences(arbitraryTemplate as JsonObject, version),
            joinIn(version),
            version,
            parts,
          );
          assert.equal(receivePdu(JSON.parse(json), version).event.sender, '@anna:a.test');
        } catch (error) {
          assert.ok(error instanceof MatrixError, String(error));
        }
      }),
      { numRuns: 2000 },
    );
  });
});
