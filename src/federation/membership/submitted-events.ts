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

/** An event submitted by another server. */
export interface SubmittedEvent {
  readonly roomId: string;
  readonly eventId: string;
  /** The PDU, with numbers as written. */
  readonly event: JsonObject;
}

/** A submitted event that is in the room. */
export interface AcceptedEvent {
  readonly head: RoomHead;
  readonly stored: StoredEvent;
  /** Servers that were in the room before the event. */
  readonly servers: readonly string[];
}

/** Accepts the events of send_join, send_knock and send_leave, and appends them to the room. */
export class SubmittedEvents {
  readonly #deps: HandshakeDeps;

  constructor(deps: HandshakeDeps) {
    this.#deps = deps;
  }

  /**
   * Appends a join to the room, with this server's signature where a local user authorises it. A server that lost the
   * response may submit the join again, and receives a new response as long as the user is joined.
   * Source: server-server API, `PUT /send_join/{roomId}/{eventId}`.
   * @throws MatrixError M_INVALID_PARAM, M_FORBIDDEN, M_NOT_FOUND, and the errors of `EventTemplates.prepare`
   */
  async join(origin: string, submitted: SubmittedEvent): Promise<AcceptedEvent> {
    const { access, throttle, signer } = this.#deps;
    const head = await roomForHandshake(access, origin, submitted.roomId);
    const { event } = this.#read(origin, head, submitted, 'join');
    const earlierJoin = await this.#joinedBefore(head, event);
    if (earlierJoin) return earlierJoin;
    const isAuthorisedHere = await this.#isAuthorisedHere(head, event);
    const verified = await this.#verified(head, isAuthorisedHere ? signEvent(event, signer).event : event);
    // Only valid joins count, so that strangers cannot use up the room's rate limit.
    throttle.remoteUserJoin(submitted.roomId);
    return this.#place(head, verified);
  }

  /**
   * Returns a join that was accepted before; `undefined` for a new one.
   * @throws MatrixError M_FORBIDDEN when the user has left the room since then, or was removed
   */
  async #joinedBefore(head: RoomHead, { eventId, sender }: RoomEvent): Promise<AcceptedEvent | undefined> {
    const { engine } = this.#deps;
    const stored = (await engine.placement.find([eventId])).get(eventId);
    const wasAccepted =
      stored?.stream !== undefined && stored.roomNid === head.roomNid && stored.event.sender === sender;
    if (!wasAccepted) return undefined;
    if (head.membership(sender) !== 'join') throw forbidden(`${sender} is no longer in the room`);
    return this.#place(head, { event: stored.event, json: canonicalJson(stored.event.pdu, 'as written') });
  }

  /**
   * Appends a leave to the room. Source: server-server API, `PUT /send_leave/{roomId}/{eventId}`.
   * @throws MatrixError M_INVALID_PARAM, M_FORBIDDEN, M_NOT_FOUND
   */
  async leave(origin: string, submitted: SubmittedEvent): Promise<AcceptedEvent> {
    const head = await roomForHandshake(this.#deps.access, origin, submitted.roomId);
    const { event } = this.#read(origin, head, submitted, 'leave');
    return this.#place(head, await this.#verified(head, event));
  }

  /**
   * Appends a knock to the room. Source: server-server API, `PUT /send_knock/{roomId}/{eventId}`.
   * @returns the stripped state of the room
   * @throws MatrixError M_INVALID_PARAM, M_NOT_FOUND; M_FORBIDDEN also when the knock has been rejected or withdrawn
   */
  async knock(origin: string, submitted: SubmittedEvent): Promise<readonly JsonObject[]> {
    const { access, engine, prejoinStateKeys } = this.#deps;
    const head = await roomForHandshake(access, origin, submitted.roomId);
    const { event } = this.#read(origin, head, submitted, 'knock');
    await this.#place(head, await this.#verified(head, event));
    // When a server submits a knock a second time, the knock may have been rejected or withdrawn in the meantime.
    const membership = head.membership(event.sender);
    if (membership === 'leave' || membership === 'ban')
      throw forbidden('The knock has been rejected or withdrawn');
    return prejoinPdus(engine, head, prejoinStateKeys);
  }

  #read(
    origin: string,
    head: RoomHead,
    { roomId, eventId, event: json }: SubmittedEvent,
    membership: HandshakeMembership,
  ): ReceivedEvent {
    const received = receivePdu(json, head.version);
    const { event, hashMatches } = received;
    if (event.eventId !== eventId) throw invalidParam('The event id does not match the event');
    if (event.roomId !== roomId) throw invalidParam('The event belongs to another room');
    if (event.type !== 'm.room.member' || event.content['membership'] !== membership) {
      throw invalidParam(`The event is not a ${membership}`);
    }
    if (serverOfUser(event.sender) !== origin) throw invalidParam(`The sender is not a user of ${origin}`);
    if (event.stateKey !== event.sender) throw invalidParam('The event is about another user');
    if (!hashMatches) throw invalidParam('The content hash of the event is wrong');
    return received;
  }

  /**
   * Whether a join names a local user in join_authorised_via_users_server.
   * @throws MatrixError when no local user may authorise the join, and when the join needs no authorisation
   */
  async #isAuthorisedHere(head: RoomHead, { content, sender }: RoomEvent): Promise<boolean> {
    const { serverName } = this.#deps;
    const authoriser = head.version.restricted ? content['join_authorised_via_users_server'] : undefined;
    if (!isUserId(authoriser) || serverOfUser(authoriser) !== serverName) return false;
    const { join_authorised_via_users_server: needed } = await joinAuthorisation(this.#deps, head, sender);
    if (needed === undefined) throw forbidden('This join needs no authorising user');
    return true;
  }

  /** @throws MatrixError M_INVALID_PARAM when the event is invalid, for instance because a signature is missing or wrong */
  async #verified(head: RoomHead, event: RoomEvent): Promise<VerifiedEvent> {
    const [verified] = await this.#deps.incoming.verify(head.version, [event.pdu]);
    if (verified && !('error' in verified)) return verified;
    throw invalidParam(verified ? `The event is invalid: ${verified.error}` : 'The event is missing');
  }

  async #place(head: RoomHead, verified: VerifiedEvent): Promise<AcceptedEvent> {
    const { engine } = this.#deps;
    const servers = [...head.servers.keys()];
    const options = { distribute: true, refuse: true };
    const stored = await engine.placement.place(head.roomId, verified, options).catch(asClientError);
    if (stored.rejected || stored.softFailed) throw forbidden('The event was rejected or soft-failed before');
    return { head, stored, servers };
  }
}

/** Replaces `MissingEvents`, which means that the event refers to unknown events, by an error for the other server. */
function asClientError(error: unknown): never {
  if (!(error instanceof MissingEvents)) throw error;
  throw new MatrixError(400, 'M_INVALID_PARAM', 'The event refers to events that this server does not have');
}
