import type { Clock } from '../../kernel/clock.ts';
import { opaqueIdLength, type Randomness, randomLetters } from '../../kernel/randomness.ts';
import {
  type EventSigner,
  prepareEvent,
  type RoomVersion,
  referenceHash,
  type UnsignedEvent,
} from '../../protocol/index.ts';
import type { EventToSend } from '../event-to-send.ts';
import type { Extremity } from './extremity.ts';
import type { RoomHead } from './room-head.ts';
import type { SendContext } from './send-context.ts';

export interface ComposerDeps {
  readonly signer: EventSigner;
  readonly clock: Clock;
  readonly randomness: Randomness;
}

/** A new event, and the forward extremities that are its `prev_events`. */
export interface ComposedEvent {
  /** The event before it is signed; not its field `unsigned`. */
  readonly unsigned: UnsignedEvent;
  readonly prev: readonly Extremity[];
  /** The nids of the auth events. */
  readonly auth: readonly number[];
}

/** The room, `prev_events` and `auth_events` of an event. */
export interface EventLinks {
  /** `undefined` for a create event whose hash is the room id. */
  readonly roomId: string | undefined;
  readonly prev: readonly Extremity[];
  readonly authEventIds: readonly string[];
}

/** Maximum number of an event's `prev_events`. Source: server-server API, "PDUs". */
export const maxPrevEvents = 10;

/** Maximum depth of an event: the largest integer of canonical JSON. */
const maxDepth = Number.MAX_SAFE_INTEGER;

/**
 * Composes the event of a draft. The forward extremities of the room become its `prev_events`; of more than
 * `maxPrevEvents`, those with the greatest depths.
 * @throws MatrixError M_TOO_LARGE, M_BAD_JSON
 */
export function composeEvent(
  deps: ComposerDeps,
  draft: EventToSend,
  head: RoomHead,
  context: SendContext,
): ComposedEvent {
  const prev =
    head.extremities.length <= maxPrevEvents
      ? head.extremities
      : [...head.extremities].sort((a, b) => b.depth - a.depth).slice(0, maxPrevEvents);
  const authEntries = context
    .authKeys(head.version)
    .map((key) => head.state.get(key))
    .filter((entry) => entry !== undefined);
  const links = { roomId: head.roomId, prev, authEventIds: authEntries.map(({ eventId }) => eventId) };
  const unsigned = composeWithLinks(deps, draft, head.version, links, context);
  return { unsigned, prev, auth: authEntries.map(({ nid }) => nid) };
}

/**
 * Composes the create event of a room.
 * @param roomId absent for a room whose id is the hash of the event
 * @throws MatrixError M_TOO_LARGE, M_BAD_JSON
 */
export function composeCreation(
  deps: ComposerDeps,
  draft: EventToSend,
  version: RoomVersion,
  roomId: string | undefined,
): ComposedEvent {
  const links = { roomId, prev: [], authEventIds: [] };
  return { unsigned: composeWithLinks(deps, draft, version, links, undefined), prev: [], auth: [] };
}

/**
 * Composes an event with these `prev_events` and `auth_events`.
 * @param context returns these events; used only in room versions 1 and 2, which need their hashes
 */
export function composeWithLinks(
  deps: ComposerDeps,
  draft: EventToSend,
  version: RoomVersion,
  links: EventLinks,
  context: Pick<SendContext, 'byId'> | undefined,
): UnsignedEvent {
  const deepest = links.prev.reduce((depth, extremity) => Math.max(depth, extremity.depth), 0);
  return prepareEvent(
    {
      roomId: links.roomId,
      type: draft.type,
      stateKey: draft.stateKey,
      sender: draft.sender,
      content: draft.content,
      redacts: draft.redacts,
      originServerTs: draft.originServerTs ?? deps.clock.now(),
      depth: Math.min(deepest + 1, maxDepth),
      authEventIds: links.authEventIds,
      prevEventIds: links.prev.map(({ eventId }) => eventId),
      ...(version.eventId === 'origin' ? serverChosenId(deps, context) : undefined),
    },
    version,
    deps.signer,
  );
}

/**
 * Returns the event id that this server chooses, and the hashes of the referenced events. Only room versions 1 and 2
 * have them.
 */
function serverChosenId(
  { randomness, signer }: ComposerDeps,
  context: Pick<SendContext, 'byId'> | undefined,
) {
  return {
    eventId: `$${randomLetters(randomness, opaqueIdLength)}:${signer.serverName}`,
    referenceHash: (eventId: string) => {
      const event = context?.byId(eventId);
      if (!event) throw new Error(`event ${eventId} is not in memory`);
      return referenceHash(event.pdu, event.version);
    },
  };
}
