/**
 * Room versions as data: each one lists only its differences from the version before it.
 * Source: https://spec.matrix.org/latest/rooms/
 */

/** The rule sets of `events/redaction.ts`, each named for the room version that introduced it. */
export type RedactionRules = 'v1' | 'v6' | 'v8' | 'v9' | 'v11';

/** How the values of `m.room.power_levels` may be written. */
export type PowerLevelNumbers = 'floats and strings' | 'integers and strings' | 'integers';

/** How the lengths of the fields of an event are counted. */
export type FieldLimitUnit = 'code points' | 'bytes';

/** All properties in which room versions differ. Immutable. */
export interface RoomVersion {
  /** The name of the version, as in the content of `m.room.create`. */
  readonly id: string;

  /** Whether the `m.room_versions` capability offers this version as stable. */
  readonly stable: boolean;

  /**
   * Where event ids come from: chosen by the origin server and part of the event (`origin`), or the reference
   * hash in standard base64 (since v3) or in URL-safe base64 (since v4).
   * https://spec.matrix.org/latest/rooms/v3/#event-ids, https://spec.matrix.org/latest/rooms/v4/#event-ids
   */
  readonly eventId: 'origin' | 'hash, base64' | 'hash, base64url';

  /**
   * How `auth_events` and `prev_events` reference events: `[event id, hashes]` pairs, or plain ids (since
   * v3).
   * https://spec.matrix.org/latest/rooms/v3/#event-format
   */
  readonly eventReferences: 'pairs' | 'ids';

  /**
   * The unit of the 255 limit on `type`, `state_key`, `sender`, `room_id` and `event_id`. The specification says bytes
   * for every version. But in rooms up to v10, other servers have accepted events whose fields fit only if code points
   * are counted, and later events refer to them. So events of other servers whose fields have more bytes are refused
   * only since v11; in older versions they are stored as rejected.
   * https://spec.matrix.org/latest/client-server-api/#size-limits
   */
  readonly fieldLimits: FieldLimitUnit;

  /**
   * Since v6, an event that is not canonical JSON (integers of at most 53 bits, no floats) is refused.
   * https://spec.matrix.org/latest/rooms/v6/#canonical-json
   */
  readonly strictCanonicalJson: boolean;

  /**
   * Since v5, a signing key must have been valid at the event's `origin_server_ts`.
   * https://spec.matrix.org/latest/rooms/v5/#signing-key-validity-period
   */
  readonly enforceKeyValidity: boolean;

  /**
   * Up to v2, the server in the event id must sign the event as well.
   * https://spec.matrix.org/latest/rooms/v3/#authorisation-rules
   */
  readonly signedByEventIdServer: boolean;

  /**
   * State resolution algorithm: v2 since v2, v2.1 since v12 (starts from an empty state, and considers the
   * conflicted state subgraph).
   * https://spec.matrix.org/latest/rooms/v2/#state-resolution,
   * https://spec.matrix.org/latest/rooms/v12/#state-resolution
   */
  readonly stateResolution: 'v1' | 'v2' | 'v2.1';

  /**
   * The rule set that says what a redaction keeps of an event.
   * https://spec.matrix.org/latest/rooms/v1/#redactions
   */
  readonly redaction: RedactionRules;

  /**
   * Where `m.room.redaction` names the redacted event: at the top level, or in `content` (since v11).
   * https://spec.matrix.org/latest/rooms/v11/#event-format
   */
  readonly redactsIn: 'event' | 'content';

  /**
   * Up to v2, the authorization rules decide on redactions (v1 rule 11). Since v3 they always allow redactions; the
   * server checks a redaction when it applies it.
   * https://spec.matrix.org/latest/rooms/v3/#handling-redactions
   */
  readonly redactionAuthRule: boolean;

  /**
   * Up to v5, `m.room.aliases` has its own authorization rule (v1 rule 4).
   * https://spec.matrix.org/latest/rooms/v6/#authorisation-rules
   */
  readonly aliasesAuthRule: boolean;

  /**
   * Since v6, changes to `notifications` in the power levels are checked like changes to `events`.
   * https://spec.matrix.org/latest/rooms/v6/#authorisation-rules
   */
  readonly notificationLevelsChecked: boolean;

  /**
   * How power levels may be written: also as floats up to v5, also as strings up to v9, only as integers
   * since v10.
   * https://spec.matrix.org/latest/rooms/v10/#values-in-mroompower_levels-events-must-be-integers
   */
  readonly powerLevelNumbers: PowerLevelNumbers;

  /**
   * Since v7, the join rule `knock` and the membership `knock` exist.
   * https://spec.matrix.org/latest/rooms/v7/#authorisation-rules
   */
  readonly knock: boolean;

  /**
   * Since v8, the join rule `restricted` and the content key `join_authorised_via_users_server` exist.
   * https://spec.matrix.org/latest/rooms/v8/#authorisation-rules
   */
  readonly restricted: boolean;

  /**
   * Since v10, the join rule `knock_restricted` exists.
   * https://spec.matrix.org/latest/rooms/v10/#authorisation-rules
   */
  readonly knockRestricted: boolean;

  /**
   * What names the creator of the room: the required field `content.creator` of the create event; or, since v11, the
   * sender of the create event.
   * https://spec.matrix.org/latest/rooms/v11/#remove-the-creator-property-of-mroomcreate-events
   */
  readonly creator: 'content' | 'sender';

  /**
   * Since v12, the creators (the sender of the create event, and `content.additional_creators`) have infinite
   * power level, and the power levels event must not list them.
   * https://spec.matrix.org/latest/rooms/v12/#authorisation-rules
   */
  readonly privilegedCreators: boolean;

  /**
   * Where room ids come from: chosen by the origin server, with its domain; or, since v12, the id of the create event
   * with the sigil `!`. Then the create event has no `room_id`.
   * https://spec.matrix.org/latest/rooms/v12/#event-format
   */
  readonly roomId: 'origin' | 'create event';

  /**
   * Up to v11, every event references the create event in its `auth_events`. Since v12 the room id names the
   * create event, and `auth_events` must not.
   * https://spec.matrix.org/latest/rooms/v12/#authorisation-rules
   */
  readonly createInAuthEvents: boolean;

  /**
   * Whether a state key may be the sender's id with a suffix, and also the id (with or without a suffix) of a user with
   * a lower power level. Source: MSC3757, "Restricting who can overwrite a state event".
   */
  readonly ownedState: boolean;
}

const v1: RoomVersion = {
  id: '1',
  stable: true,
  eventId: 'origin',
  eventReferences: 'pairs',
  fieldLimits: 'code points',
  strictCanonicalJson: false,
  enforceKeyValidity: false,
  signedByEventIdServer: true,
  stateResolution: 'v1',
  redaction: 'v1',
  redactsIn: 'event',
  redactionAuthRule: true,
  aliasesAuthRule: true,
  notificationLevelsChecked: false,
  powerLevelNumbers: 'floats and strings',
  knock: false,
  restricted: false,
  knockRestricted: false,
  creator: 'content',
  privilegedCreators: false,
  roomId: 'origin',
  createInAuthEvents: true,
  ownedState: false,
};

const v2: RoomVersion = { ...v1, id: '2', stateResolution: 'v2' };

const v3: RoomVersion = {
  ...v2,
  id: '3',
  eventId: 'hash, base64',
  eventReferences: 'ids',
  signedByEventIdServer: false,
  redactionAuthRule: false,
};

const v4: RoomVersion = { ...v3, id: '4', eventId: 'hash, base64url' };

const v5: RoomVersion = { ...v4, id: '5', enforceKeyValidity: true };

const v6: RoomVersion = {
  ...v5,
  id: '6',
  strictCanonicalJson: true,
  redaction: 'v6',
  aliasesAuthRule: false,
  notificationLevelsChecked: true,
  powerLevelNumbers: 'integers and strings',
};

const v7: RoomVersion = { ...v6, id: '7', knock: true };

const v8: RoomVersion = { ...v7, id: '8', redaction: 'v8', restricted: true };

const v9: RoomVersion = { ...v8, id: '9', redaction: 'v9' };

const v10: RoomVersion = { ...v9, id: '10', powerLevelNumbers: 'integers', knockRestricted: true };

const v11: RoomVersion = {
  ...v10,
  id: '11',
  fieldLimits: 'bytes',
  redaction: 'v11',
  redactsIn: 'content',
  creator: 'sender',
};

const v12: RoomVersion = {
  ...v11,
  id: '12',
  stateResolution: 'v2.1',
  privilegedCreators: true,
  roomId: 'create event',
  createInAuthEvents: false,
};

/** The room versions of MSC3757. */
const ownedStateVersions = [v10, v11].map(
  (version): RoomVersion => ({
    ...version,
    id: `org.matrix.msc3757.${version.id}`,
    stable: false,
    ownedState: true,
  }),
);

/** All room versions that this server supports: first the versions of the specification from oldest to newest, then others. */
export const roomVersions: ReadonlyMap<string, RoomVersion> = new Map(
  [v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, ...ownedStateVersions].map((version) => [
    version.id,
    Object.freeze(version),
  ]),
);

/**
 * Returns the room version with that id; `undefined` if it is not supported (`M_UNSUPPORTED_ROOM_VERSION`).
 */
export function getRoomVersion(id: string): RoomVersion | undefined {
  return roomVersions.get(id);
}
