import type { Pdu } from '../event.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../json.ts';
import type { RedactionRules, RoomVersion } from '../room-versions.ts';

/** Fields that a redaction keeps: the whole value (`true`), or some fields of an object. */
interface KeptFields {
  readonly [key: string]: true | KeptFields;
}

interface Rules {
  /** The top-level keys of an event that a redaction keeps. */
  readonly event: ReadonlySet<string>;
  /** The fields of `content` that a redaction keeps, by event type; none for other types. */
  readonly content: Readonly<Record<string, true | KeptFields>>;
}

const v1: Rules = {
  event: new Set([
    'event_id',
    'type',
    'room_id',
    'sender',
    'state_key',
    'content',
    'hashes',
    'signatures',
    'depth',
    'prev_events',
    'prev_state',
    'auth_events',
    'origin',
    'origin_server_ts',
    'membership',
  ]),
  content: {
    'm.room.member': { membership: true },
    'm.room.create': { creator: true },
    'm.room.join_rules': { join_rule: true },
    'm.room.power_levels': {
      ban: true,
      events: true,
      events_default: true,
      kick: true,
      redact: true,
      state_default: true,
      users: true,
      users_default: true,
    },
    'm.room.aliases': { aliases: true },
    'm.room.history_visibility': { history_visibility: true },
  },
};

/** v6 does not keep `aliases`. */
const v6: Rules = { ...v1, content: { ...v1.content, 'm.room.aliases': {} } };

/** v8 keeps `allow`, which restricted rooms need. */
const v8: Rules = {
  ...v6,
  content: { ...v6.content, 'm.room.join_rules': { join_rule: true, allow: true } },
};

/** v9 keeps `join_authorised_via_users_server`, so that a redacted join to a restricted room stays valid. */
const v9: Rules = {
  ...v8,
  content: { ...v8.content, 'm.room.member': { membership: true, join_authorised_via_users_server: true } },
};

/** v11 keeps exactly the fields that the protocol depends on. */
const v11: Rules = {
  event: v9.event.difference(new Set(['origin', 'membership', 'prev_state'])),
  content: {
    ...v9.content,
    'm.room.member': {
      membership: true,
      join_authorised_via_users_server: true,
      third_party_invite: { signed: true },
    },
    'm.room.create': true,
    'm.room.power_levels': { ...(v9.content['m.room.power_levels'] as KeptFields), invite: true },
    'm.room.redaction': { redacts: true },
  },
};

const rules: Readonly<Record<RedactionRules, Rules>> = { v1, v6, v8, v9, v11 };

/**
 * Returns what a redaction leaves of an event, in the steps of the specification: removes the top-level keys that the
 * room version does not keep (such as `unsigned`), then the keys of `content` that the room version does not keep for
 * the event type.
 * The result shares its parts with the original.
 * Source: room versions, "Redactions".
 */
export function redactPdu<T extends JsonObject>(pdu: T, version: RoomVersion): T {
  const redacted: Record<string, JsonValue | undefined> = {};
  for (const key of Object.keys(pdu)) {
    if (survivesRedaction(key, version)) redacted[key] = pdu[key];
  }
  if (isJsonObject(pdu.content)) redacted.content = redactContent(String(pdu.type), pdu.content, version);
  return redacted as T;
}

/**
 * Whether a redaction keeps that top-level key of an event (`content` is kept, but not all of its fields).
 */
export function survivesRedaction(key: string, version: RoomVersion): boolean {
  return rules[version.redaction].event.has(key);
}

/** Returns what a redaction leaves of the content of an event of that type. */
export function redactContent(type: string, content: JsonObject, version: RoomVersion): Pdu['content'] {
  const byType = rules[version.redaction].content;
  const kept = Object.hasOwn(byType, type) ? byType[type]! : {};
  return kept === true ? content : keepFields(content, kept);
}

/** Keeps only the listed fields. A field with a list of inner fields is dropped unless it is an object. */
function keepFields(object: JsonObject, kept: KeptFields): JsonObject {
  const result: Record<string, JsonValue> = {};
  for (const [key, rule] of Object.entries(kept)) {
    const value = Object.hasOwn(object, key) ? object[key] : undefined;
    if (value === undefined) continue;
    if (rule === true) result[key] = value;
    else if (isJsonObject(value)) result[key] = keepFields(value, rule);
  }
  return result;
}
