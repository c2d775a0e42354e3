import { randomLetters } from '../../../kernel/randomness.ts';
import {
  type BuiltEvent,
  buildEvent,
  type JsonObject,
  MatrixError,
  type RoomEvent,
  referenceHash,
} from '../../../protocol/index.ts';
import type { Placement } from '../../placement/placement.ts';
import type { StoredEvent } from '../../stored-event.ts';
import { askInTurn } from './ask-in-turn.ts';
import { eventAt } from './event-from-template.ts';
import { type HandshakeParts, knownVersions } from './handshake-parts.ts';
import { checkTemplate } from './template-check.ts';

/** Milliseconds for each server: a client waits, and the room is left in any case. */
const patience = 15_000;

export interface LeavePlace {
  /** The invite or the knock that ends. */
  readonly present: RoomEvent;
  readonly userId: string;
  readonly servers: readonly string[];
  readonly content: JsonObject;
}

/**
 * Turns down invites to rooms that this server is not in, and takes back knocks on them.
 * Source: server-server API, "Leaving Rooms (Rejecting Invites)".
 */
export class RemoteLeave {
  readonly #parts: HandshakeParts & { readonly placement: Placement };

  constructor(parts: HandshakeParts & { readonly placement: Placement }) {
    this.#parts = parts;
  }

  /** Leaves in any case: when no server takes the event, only this one knows of it. */
  async leave(place: LeavePlace): Promise<StoredEvent> {
    const { present } = place;
    const told = await this.#tell(place).catch((error: unknown) => {
      if (!(error instanceof MatrixError)) throw error;
    });
    const event = told ?? leaveAfter(present, place, this.#parts);
    const room = { roomId: present.roomId, version: event.event.version };
    return this.#parts.placement.outOfBand(room, event, { state: [] });
  }

  /**
   * Has a server in the room take the event, made by the rules of the version that this server states: an invite may
   * have named another one.
   */
  #tell({ servers, userId, present, content }: LeavePlace): Promise<BuiltEvent> {
    const { peers, clock } = this.#parts;
    const { roomId, version } = present;
    // Nobody tries it again later, so servers are asked that could not be reached lately, too.
    const request = { ignoreBackoff: true, timeout: patience };
    return askInTurn(servers, clock, async (server) => {
      const prepared = await peers.template(server, 'leave', { roomId, userId }, knownVersions, request);
      const expected = { server, roomId, userId, membership: 'leave', usualVersion: version.id } as const;
      const template = checkTemplate(prepared, expected);
      const own = { roomId, type: 'm.room.member', sender: userId, stateKey: userId };
      const built = eventAt(
        template.place,
        { ...own, content: { ...content, membership: 'leave' } },
        template.version,
        this.#parts,
      );
      const { eventId, pdu } = built.event;
      await peers.sendLeave(server, { roomId, eventId, event: pdu }, request);
      return built;
    });
  }
}

/** The end of an invite or a knock of which nobody else hears. */
function leaveAfter(present: RoomEvent, { userId, content }: LeavePlace, parts: HandshakeParts): BuiltEvent {
  const { signer, clock, randomness } = parts;
  const { version, roomId, eventId, depth } = present;
  const draft = {
    roomId,
    type: 'm.room.member',
    sender: userId,
    stateKey: userId,
    content: { ...content, membership: 'leave' },
  };
  return buildEvent(
    {
      ...draft,
      depth: depth + 1,
      originServerTs: clock.now(),
      prevEventIds: [eventId],
      authEventIds: [eventId],
      ...(version.eventId === 'origin' && {
        eventId: `$${randomLetters(randomness, 18)}:${signer.serverName}`,
        referenceHash: () => referenceHash(present.pdu, version),
      }),
    },
    version,
    signer,
  );
}
