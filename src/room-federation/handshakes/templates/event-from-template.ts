import type { Clock } from '../../../kernel/clock.ts';
import { opaqueIdLength, type Randomness, randomLetters } from '../../../kernel/randomness.ts';
import {
  type BuiltEvent,
  badJson,
  buildEvent,
  type EventSigner,
  isEventIdOf,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  MAX_AUTH_EVENTS,
  MAX_PREV_EVENTS,
  numberOf,
  type RoomVersion,
  receivePdu,
} from '../../../protocol/index.ts';

export interface EventBuildDeps {
  readonly signer: EventSigner;
  readonly clock: Clock;
  readonly randomness: Randomness;
}

/** The fields of a local user's event that are not taken from the event template. */
export interface LocalEvent {
  readonly roomId: string;
  readonly type: string;
  readonly sender: string;
  readonly stateKey: string;
  readonly content: JsonObject;
}

/**
 * References to the room's history: event ids, in room versions 1 and 2 with their hashes as far as the event
 * template has them.
 */
export interface GraphReferences {
  readonly prev: ReadonlyMap<string, string | undefined>;
  readonly auth: ReadonlyMap<string, string | undefined>;
  readonly depth: number;
}

/** Returns the references of an event template; nothing else is taken from it. @throws MatrixError M_BAD_JSON */
export function graphReferences(template: JsonObject, version: RoomVersion): GraphReferences {
  return {
    prev: referencesIn(template['prev_events'], MAX_PREV_EVENTS, version),
    auth: referencesIn(template['auth_events'], MAX_AUTH_EVENTS, version),
    depth: depthIn(template['depth']),
  };
}

/**
 * Builds and signs an event of a local user with the references of an event template. Sets `origin`, as in
 * the bodies of `send_join`, `send_leave`, `send_knock` and `invite`.
 * Source: server-server API, "Joining Rooms": the joining server adds or replaces `origin`.
 * @param options.hasOrigin false for an event that is not part of a handshake
 * @throws MatrixError M_BAD_JSON, M_TOO_LARGE when the event would be invalid
 */
export function buildFromTemplate(
  { prev, auth, depth }: GraphReferences,
  event: LocalEvent,
  version: RoomVersion,
  { signer, clock, randomness }: EventBuildDeps,
  { hasOrigin = true }: { readonly hasOrigin?: boolean } = {},
): BuiltEvent {
  const built = buildEvent(
    {
      ...event,
      ...(hasOrigin && { origin: signer.serverName }),
      depth,
      originServerTs: clock.now(),
      prevEventIds: [...prev.keys()],
      authEventIds: [...auth.keys()],
      ...(version.eventId === 'origin' && {
        eventId: `$${randomLetters(randomness, opaqueIdLength)}:${signer.serverName}`,
        referenceHash: (eventId: string) => prev.get(eventId) ?? auth.get(eventId),
      }),
    },
    version,
    signer,
  );
  // References came from a remote server: check that the event is valid.
  receivePdu(built.event.pdu, version);
  return built;
}

/**
 * Returns the hash of each reference by event id; `undefined` where a reference has none. Some servers omit hashes even
 * in room versions that have them.
 */
function referencesIn(
  value: JsonValue | undefined,
  max: number,
  version: RoomVersion,
): ReadonlyMap<string, string | undefined> {
  if (!Array.isArray(value) || value.length > max) throw badJson('The event template has invalid references');
  const references = (value as readonly JsonValue[]).map(
    (reference): [eventId: string, hash: string | undefined] => {
      const [eventId, hashes] =
        version.eventReferences === 'ids' ? [reference] : Array.isArray(reference) ? reference : [];
      if (!isEventIdOf(version, eventId)) throw badJson('The event template refers to an invalid event id');
      const hash = isJsonObject(hashes) ? hashes['sha256'] : undefined;
      return [eventId, typeof hash === 'string' ? hash : undefined];
    },
  );
  return new Map(references);
}

function depthIn(value: JsonValue | undefined): number {
  const depth = numberOf(value);
  if (depth === undefined || !(depth >= 0)) throw badJson('The event template has no valid depth');
  return Math.min(Math.floor(depth), Number.MAX_SAFE_INTEGER);
}
