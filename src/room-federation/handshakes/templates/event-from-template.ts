import type { Clock } from '../../../kernel/clock.ts';
import { type Randomness, randomLetters } from '../../../kernel/randomness.ts';
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

/** What an event of a local user says: all that is not taken from the template. */
export interface LocalEvent {
  readonly roomId: string;
  readonly type: string;
  readonly sender: string;
  readonly stateKey: string;
  readonly content: JsonObject;
}

/** A place in a room's history: event ids, in room versions 1 and 2 with their hashes where the template has them. */
export interface GraphReferences {
  readonly prev: ReadonlyMap<string, string | undefined>;
  readonly auth: ReadonlyMap<string, string | undefined>;
  readonly depth: number;
}

/** The place that a template names: nothing else is taken from it. @throws MatrixError M_BAD_JSON */
export function graphReferences(template: JsonObject, version: RoomVersion): GraphReferences {
  return {
    prev: referencesIn(template['prev_events'], MAX_PREV_EVENTS, version),
    auth: referencesIn(template['auth_events'], MAX_AUTH_EVENTS, version),
    depth: depthIn(template['depth']),
  };
}

/**
 * An event of a local user at a place in the room's history that a template has named. It says which server has made
 * it, as the bodies of `send_join`, `send_leave`, `send_knock` and `invite` do.
 * Source: server-server API, "Joining Rooms": the joining server adds or replaces `origin`.
 * @throws MatrixError M_BAD_JSON, M_TOO_LARGE when its content is no good
 */
export function buildFromTemplate(
  { prev, auth, depth }: GraphReferences,
  own: LocalEvent,
  version: RoomVersion,
  { signer, clock, randomness }: EventBuildDeps,
): BuiltEvent {
  const built = buildEvent(
    {
      ...own,
      origin: signer.serverName,
      depth,
      originServerTs: clock.now(),
      prevEventIds: [...prev.keys()],
      authEventIds: [...auth.keys()],
      ...(version.eventId === 'origin' && {
        eventId: `$${randomLetters(randomness, 18)}:${signer.serverName}`,
        referenceHash: (eventId: string) => prev.get(eventId) ?? auth.get(eventId),
      }),
    },
    version,
    signer,
  );
  // What was built with the ids of others must be an event that others take.
  receivePdu(built.event.pdu, version);
  return built;
}

/** By event id. The reference server leaves hashes out of some references, of room versions that have them, too. */
function referencesIn(
  value: JsonValue | undefined,
  most: number,
  version: RoomVersion,
): ReadonlyMap<string, string | undefined> {
  if (!Array.isArray(value) || value.length > most) throw badJson('The template has no place in the history');
  const references = (value as readonly JsonValue[]).map((one): [string, string | undefined] => {
    const [eventId, hashes] = version.eventReferences === 'ids' ? [one] : Array.isArray(one) ? one : [];
    if (!isEventIdOf(version, eventId)) throw badJson('The template names something that is no event');
    const hash = isJsonObject(hashes) ? hashes['sha256'] : undefined;
    return [eventId, typeof hash === 'string' ? hash : undefined];
  });
  return new Map(references);
}

function depthIn(value: JsonValue | undefined): number {
  const depth = numberOf(value);
  if (depth === undefined || !(depth >= 0)) throw badJson('The template has no depth');
  return Math.min(Math.floor(depth), Number.MAX_SAFE_INTEGER);
}
