/** Generators for property tests of the protocol. */
import fc from 'fast-check';
import { type EventDraft, type JsonValue, type RoomVersion, roomVersions } from '../../src/protocol/index.ts';
import { codePoint } from '../support/inputs/code-point.ts';

/**
 * Text that can be encoded as UTF-8, with characters that are special in sorting, escaping or object keys.
 */
export const anyText = fc.oneof(
  fc.string({ unit: 'grapheme-ascii' }),
  fc.string({ unit: codePoint }),
  fc.constantFrom(
    '',
    '__proto__',
    'constructor',
    '10',
    '9',
    'rawJSON',
    '\u{1f600}',
    '\uff5e',
    '\ud7ff',
    '"\\',
  ),
);

const anyInteger = fc.oneof(fc.integer(), fc.maxSafeInteger());

/** JSON that is valid in every room version. */
export const canonicalValue: fc.Arbitrary<JsonValue> = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    anyInteger,
    anyText,
    fc.boolean(),
    fc.constant(null),
    fc.array(tie('value'), { maxLength: 4 }),
    objectOf(tie('value')),
  ),
})).value;

/** Objects with fields in any order, some of them with an own field `__proto__`. */
function objectOf(value: fc.Arbitrary<JsonValue>): fc.Arbitrary<Readonly<Record<string, JsonValue>>> {
  const entries = fc.uniqueArray(fc.tuple(anyText, value), { maxLength: 6, selector: ([key]) => key });
  return entries.map((pairs) => Object.fromEntries(pairs));
}

export const canonicalObject = objectOf(canonicalValue);

export const anyRoomVersion: fc.Arbitrary<RoomVersion> = fc.constantFrom(...roomVersions.values());

const eventTypes = [
  'm.room.create',
  'm.room.member',
  'm.room.power_levels',
  'm.room.join_rules',
  'm.room.aliases',
  'm.room.history_visibility',
  'm.room.redaction',
  'm.room.message',
];

/** Content with the fields that redaction rules keep, with values of any type. */
const protocolContent = fc
  .record(
    {
      membership: canonicalValue,
      creator: canonicalValue,
      join_rule: canonicalValue,
      allow: canonicalValue,
      users: canonicalValue,
      invite: canonicalValue,
      aliases: canonicalValue,
      redacts: canonicalValue,
      third_party_invite: fc.oneof(
        canonicalValue,
        fc.record({ signed: canonicalValue, other: canonicalValue }),
      ),
    },
    { requiredKeys: [] },
  )
  .map((content) => ({ ...content }));

const hashId = fc.stringMatching(/^\$[A-Za-z0-9_-]{43}$/);

/** Event drafts of the format of a room version. */
export function draftOf(version: RoomVersion): fc.Arbitrary<EventDraft> {
  const originChoosesIds = version.eventId === 'origin';
  return fc
    .record({
      type: fc.oneof(fc.constantFrom(...eventTypes), fc.string({ unit: 'grapheme-ascii', maxLength: 40 })),
      sender: fc.constantFrom('@alice:example.org', '@Älice:example.org', '@:example.org'),
      content: fc.tuple(canonicalObject, protocolContent).map(([any, protocol]) => ({ ...any, ...protocol })),
      stateKey: fc.option(fc.string({ unit: 'grapheme-ascii', maxLength: 40 }), { nil: undefined }),
      depth: fc.nat(),
      originServerTs: fc.nat(),
      authEventIds: fc.array(hashId, { maxLength: 10 }),
      prevEventIds: fc.array(hashId, { maxLength: 20 }),
      redacts: fc.option(hashId, { nil: undefined }),
    })
    .map((draft) => ({
      ...draft,
      redacts: draft.type === 'm.room.redaction' ? draft.redacts : undefined,
      roomId: roomIdFor(version, draft.type),
      eventId: originChoosesIds ? '$opaque:example.org' : undefined,
      referenceHash: originChoosesIds ? (id: string) => id.slice(1) : undefined,
    }));
}

function roomIdFor(version: RoomVersion, type: string): string | undefined {
  if (version.roomId === 'origin') return '!room:example.org';
  return type === 'm.room.create' ? undefined : '!Nhcu5BS-UMnFX7hBVfVSoXiD7OgH6iRT-xyIuqDnpYQ';
}
