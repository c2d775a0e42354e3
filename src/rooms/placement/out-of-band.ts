import { badJson, forbidden, membershipOf, type StrippedState, serverOfUser } from '../../protocol/index.ts';
import type { RoomFact, StoredEvent } from '../stored-event.ts';
import { isText } from '../timeline/event-to-send.ts';
import { type Outliers, outlierOf } from './outliers.ts';
import { checkRoom, type PlacedEvent } from './place-event.ts';
import type { PlacementParts } from './placement-parts.ts';
import type { RoomOfVersion, VerifiedEvent } from './verified-event.ts';

/** Takes note of what becomes of local users in rooms that this server is not in. */
export class OutOfBand {
  readonly #parts: PlacementParts;
  readonly #outliers: Outliers;

  constructor(parts: PlacementParts, outliers: Outliers) {
    this.#parts = parts;
    this.#outliers = outliers;
  }

  /** One call at a time in each room. */
  async take(
    room: RoomOfVersion,
    { event, json }: VerifiedEvent,
    strippedState: readonly StrippedState[],
  ): Promise<PlacedEvent> {
    const { events, userRooms, writer, heads, streams, stream, clock, signer } = this.#parts;
    checkRoom(room, event);
    const { stateKey: userId } = event;
    if (event.type !== 'm.room.member' || userId === undefined || !isText(userId)) {
      throw badJson('This is not a membership event');
    }
    if (serverOfUser(userId) !== signer.serverName) throw forbidden('The user is of another server');
    const head = await this.#outliers.headOf(room);
    const known = await events.getById(event.eventId);
    const from = (await userRooms.of(userId)).get(room.roomId);
    if (head.servers.has(signer.serverName)) throw forbidden('This server is in the room');
    if (known && (known.roomNid !== head.roomNid || known.stream !== undefined)) {
      throw forbidden('The event has its place already');
    }
    // It came before. A repetition brings nothing back that was turned down or replaced meanwhile.
    if (known && (known.unchecked || from?.eventNid === known.nid)) {
      return { stored: known, durable: Promise.resolve(), isBarrier: false };
    }
    const isNewRoom = heads.peek(head.roomId) !== head && !head.broken;
    if (isNewRoom) heads.adopt(head);
    const to = membershipOf(event.content);
    const isShown = to === 'invite' || to === 'knock';
    const reservation = streams.reserve(stream);
    const { position } = reservation;
    const stored: StoredEvent = known ?? { ...outlierOf(head, event, position), unchecked: true };
    const fact: RoomFact = {
      roomId: room.roomId,
      position,
      onTimeline: false,
      stored,
      stateChanges: [],
      membershipChanges: [{ userId, from: from?.membership, to, eventNid: stored.nid }],
    };
    const durable = writer.stage({
      head,
      stored,
      row: known ? 'untouched' : 'new',
      fact,
      content: json,
      end: undefined,
      groups: [],
      auth: [],
      redacts: undefined,
      reservation,
      ...(isNewRoom && { roomCreatedTs: clock.now() }),
      remote: { stripped: new Map([[userId, isShown ? JSON.stringify(strippedState) : undefined]]) },
    });
    return { stored, durable, isBarrier: true };
  }
}
