import {
  canonicalJson,
  forbidden,
  invalidParam,
  isUserId,
  type JsonObject,
  MatrixError,
  type ReceivedEvent,
  type RoomEvent,
  receivePdu,
  serverOfUser,
  signEvent,
} from '../../protocol/index.ts';
import {
  MissingEvents,
  type RoomHead,
  type StoredEvent,
  type VerifiedEvent,
} from '../../room-engine/index.ts';
import { prejoinPdus } from '../../room-federation/index.ts';
import { joinAuthorisation, roomForHandshake } from './event-templates.ts';
import type { HandshakeDeps, HandshakeMembership } from './handshake-deps.ts';

/** An event as another server hands it in. */
export interface SubmittedEvent {
  readonly roomId: string;
  readonly eventId: string;
  /** The PDU, with numbers as they are written. */
  readonly event: JsonObject;
}

/** An event that is in the room now. */
export interface AcceptedEvent {
  readonly head: RoomHead;
  readonly stored: StoredEvent;
  /** The servers that were in the room before. */
  readonly servers: readonly string[];
}

/** Takes the events with which users of other servers join, knock and leave, and passes them on to the room. */
export class SubmittedEvents {
  readonly #deps: HandshakeDeps;

  constructor(deps: HandshakeDeps) {
    this.#deps = deps;
  }

  /**
   * Puts a join into the room; where a user of this server authorises it, with the signature of this server. One that
   * comes again, because its answer was lost, is answered again as long as it counts.
   * Source: server-server API, `PUT /send_join/{roomId}/{eventId}`.
   * @throws MatrixError M_INVALID_PARAM, M_FORBIDDEN, M_NOT_FOUND, and as `Templates.prepare` does
   */
  async join(origin: string, handedIn: SubmittedEvent): Promise<AcceptedEvent> {
    const { access, throttle, signer } = this.#deps;
    const head = await roomForHandshake(access, origin, handedIn.roomId);
    const { event } = this.#read(origin, head, handedIn, 'join');
    const again = await this.#joinedBefore(head, event);
    if (again) return again;
    const isOurs = await this.#isAuthorisedHere(head, event);
    const verified = await this.#verified(head, isOurs ? signEvent(event, signer).event : event);
    // Only what is real counts, or a stranger could use up the limit of a room.
    throttle.joinOfOther(handedIn.roomId);
    return this.#place(head, verified);
  }

  /** @throws MatrixError M_FORBIDDEN when the user has left the room since, or was removed */
  async #joinedBefore(head: RoomHead, { eventId, sender }: RoomEvent): Promise<AcceptedEvent | undefined> {
    const { engine } = this.#deps;
    const stored = (await engine.placement.find([eventId])).get(eventId);
    const isJoin =
      stored?.stream !== undefined && stored.roomNid === head.roomNid && stored.event.sender === sender;
    if (!isJoin) return undefined;
    if (head.membership(sender) !== 'join') throw forbidden(`${sender} is no longer in the room`);
    return this.#place(head, { event: stored.event, json: canonicalJson(stored.event.pdu, 'as written') });
  }

  /** As `join`. Source: server-server API, `PUT /send_leave/{roomId}/{eventId}`. */
  async leave(origin: string, handedIn: SubmittedEvent): Promise<AcceptedEvent> {
    const head = await roomForHandshake(this.#deps.access, origin, handedIn.roomId);
    const { event } = this.#read(origin, head, handedIn, 'leave');
    return this.#place(head, await this.#verified(head, event));
  }

  /**
   * As `join`. Source: server-server API, `PUT /send_knock/{roomId}/{eventId}`.
   * @returns what the user is shown of the room
   */
  async knock(origin: string, handedIn: SubmittedEvent): Promise<readonly JsonObject[]> {
    const { access, engine, prejoinKeys } = this.#deps;
    const head = await roomForHandshake(access, origin, handedIn.roomId);
    const { event } = this.#read(origin, head, handedIn, 'knock');
    await this.#place(head, await this.#verified(head, event));
    // One that comes again may count no more.
    const present = head.membership(event.sender);
    if (present === 'leave' || present === 'ban') throw forbidden('The knock counts no more');
    return prejoinPdus(engine, head, prejoinKeys);
  }

  #read(
    origin: string,
    head: RoomHead,
    { roomId, eventId, event: json }: SubmittedEvent,
    membership: HandshakeMembership,
  ): ReceivedEvent {
    const received = receivePdu(json, head.version);
    const { event, hashMatches } = received;
    if (event.eventId !== eventId) throw invalidParam('The event has another id');
    if (event.roomId !== roomId) throw invalidParam('The event is of another room');
    if (event.type !== 'm.room.member' || event.content['membership'] !== membership) {
      throw invalidParam(`This is no ${membership}`);
    }
    if (serverOfUser(event.sender) !== origin) throw invalidParam(`The sender is no user of ${origin}`);
    if (event.stateKey !== event.sender) throw invalidParam('The event is about another user');
    if (!hashMatches) throw invalidParam('The hash of the event is wrong');
    return received;
  }

  /**
   * Whether a join names a user of this server as who lets the joining user in.
   * @throws MatrixError when this server does not do that
   */
  async #isAuthorisedHere(head: RoomHead, { content, sender }: RoomEvent): Promise<boolean> {
    const { serverName } = this.#deps;
    const authoriser = head.version.restricted ? content['join_authorised_via_users_server'] : undefined;
    if (!isUserId(authoriser) || serverOfUser(authoriser) !== serverName) return false;
    const { join_authorised_via_users_server: needed } = await joinAuthorisation(this.#deps, head, sender);
    if (needed === undefined) throw forbidden('This join needs nobody to authorise it');
    return true;
  }

  async #verified(head: RoomHead, event: RoomEvent): Promise<VerifiedEvent> {
    const [verified] = await this.#deps.incoming.verify(head.version, [event.pdu]);
    if (verified && !('error' in verified)) return verified;
    throw invalidParam(verified ? `The event can not be used: ${verified.error}` : 'There is no event');
  }

  async #place(head: RoomHead, verified: VerifiedEvent): Promise<AcceptedEvent> {
    const { engine } = this.#deps;
    const servers = [...head.servers.keys()];
    const options = { distribute: true, refuse: true };
    const stored = await engine.placement.place(head.roomId, verified, options).catch(asClientError);
    if (stored.rejected || stored.softFailed) throw forbidden('The event was refused before');
    return { head, stored, servers };
  }
}

/** The event can not come after events that nobody here has seen. */
function asClientError(error: unknown): never {
  if (!(error instanceof MissingEvents)) throw error;
  throw new MatrixError(400, 'M_INVALID_PARAM', 'The event refers to events that are not known here');
}
