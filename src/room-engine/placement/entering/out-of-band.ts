import { badJson, forbidden, membershipOf, type RoomEvent, serverOfUser } from '../../../protocol/index.ts';
import { isStorableText } from '../../event-to-send.ts';
import { type RoomFact, type StoredEvent, withoutEnd } from '../../stored-event.ts';
import type { WritableHead } from '../../timeline/writable-head.ts';
import type { RoomWithVersion, VerifiedEvent } from '../../verified-event.ts';
import { outlierOf } from '../events/outliers.ts';
import { type PlacedEvent, requireSameRoom } from '../events/place-event.ts';
import type { OutOfBandDetails } from '../placement.ts';
import type { PlacementDeps } from '../placement-deps.ts';

/**
 * Stores out-of-band memberships: invites, knocks and leaves of local users in rooms that this server is not in. The
 * room version of the request with such an event is unverified and applies to that event alone (decision 0116).
 */
export class OutOfBandMemberships {
  readonly #deps: PlacementDeps;

  constructor(deps: PlacementDeps) {
    this.#deps = deps;
  }

  /**
   * Stores an out-of-band membership event and publishes the membership. A repeated event changes nothing.
   * Calls for one room must be serialized.
   * @throws MatrixError M_BAD_JSON for any other event; M_FORBIDDEN for a remote user, for an event that is placed
   * already, when a local user is in the room, and when this server has entered the room with another version
   */
  async add(
    room: RoomWithVersion,
    { event, json }: VerifiedEvent,
    { state, server }: OutOfBandDetails,
  ): Promise<PlacedEvent> {
    const { userRooms, writer, heads, roomNids, clock, signer } = this.#deps;
    requireSameRoom(room, event);
    const userId = memberOf(event);
    if (serverOfUser(userId) !== signer.serverName) throw forbidden('The user belongs to another server');
    const to = membershipOf(event.content);
    const hasStrippedState = to === 'invite' || to === 'knock';
    const head =
      (await heads.get(room.roomId)) ?? heads.createHead(roomNids.next(), room.roomId, room.version);
    const stored = await this.#findStored(head, event.eventId);
    const previous = (await userRooms.of(userId)).get(room.roomId);
    if (head.servers.has(signer.serverName)) throw forbidden('This server is in the room');
    if (hasStrippedState && head.isEntered && head.version !== room.version) {
      throw forbidden('The room has another version');
    }
    if (stored?.stream !== undefined) throw forbidden('The event has been placed already');
    // A repeated invite does not undo its rejection or a newer membership.
    if (stored) return { stored, durable: Promise.resolve(), nextEventWaitsForDisk: false };
    const stripped = new Map([[userId, hasStrippedState ? JSON.stringify(state) : undefined]]);
    return writer.extend(head, (reserve) => {
      const reservation = reserve();
      const { position } = reservation;
      const isNewRoom = heads.peek(head.roomId) !== head && !head.broken;
      if (isNewRoom) heads.register(head);
      const stored: StoredEvent = { ...outlierOf(head, event, position), outOfBand: true };
      const fact: RoomFact = {
        roomId: room.roomId,
        position,
        onTimeline: false,
        ...withoutEnd,
        stored,
        stateChanges: [],
        membershipChanges: [{ userId, from: previous?.membership, to, eventNid: stored.nid }],
      };
      const durable = writer.stage({
        head,
        stored,
        rowAction: 'outside',
        fact,
        content: json,
        end: undefined,
        groups: [],
        auth: [],
        redacts: undefined,
        reservation,
        ...(isNewRoom && { roomCreatedTs: clock.now() }),
        remote: { server, stripped },
      });
      return { stored, durable, nextEventWaitsForDisk: true };
    });
  }

  /**
   * Returns the event if it is stored already: as an out-of-band event, or as an event of a room that this server was
   * in.
   */
  async #findStored(head: WritableHead, eventId: string): Promise<StoredEvent | undefined> {
    const { events } = this.#deps;
    const outside = await events.getOutOfBand(head.roomNid, eventId);
    if (outside || !head.isEntered) return outside;
    const roomEvent = await events.getById(eventId);
    return roomEvent?.roomNid === head.roomNid ? roomEvent : undefined;
  }
}

/**
 * Returns the user whose membership an event changes.
 * @throws MatrixError M_BAD_JSON for other events, and for ids that cannot be stored
 */
function memberOf({ type, stateKey: userId, eventId }: RoomEvent): string {
  const isMembership = type === 'm.room.member' && userId !== undefined;
  if (!isMembership || !isStorableText(userId) || !isStorableText(eventId)) {
    throw badJson('This is not a membership event, or its user id or event id cannot be stored');
  }
  return userId;
}
