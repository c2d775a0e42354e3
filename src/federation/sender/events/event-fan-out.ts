import type { CacheRegistry } from '../../../kernel/caches/index.ts';
import { FactBuffer, type StreamReader } from '../../../kernel/streams/index.ts';
import { isDummyEvent, serverOfUser } from '../../../protocol/index.ts';
import type { RoomFact, RoomReader, StoredEvent } from '../../../room-engine/index.ts';
import { type OutgoingPdu, outgoingPdu } from '../transactions/outgoing-pdu.ts';
import { RoomServers } from './room-servers.ts';

export interface EventFanOutDeps {
  readonly caches: CacheRegistry;
  readonly serverName: string;
  readonly engine: Pick<RoomReader, 'stream' | 'events' | 'heads' | 'groups'>;
  readonly streams: Pick<StreamReader, 'current'>;
  /** Whether this server federates with a server. */
  readonly isDestination: (serverName: string) => boolean;
  /** Receives an event and all servers to which it is sent. */
  readonly deliver: (pdu: OutgoingPdu, destinations: readonly string[]) => void;
}

type Placed = StoredEvent & { readonly stream: number };

/** Number of events read at a time. */
const pageSize = 500;

/**
 * Delivers this server's events to the servers in their rooms. Events come from the stream as they are
 * published, or from the database after a restart.
 */
export class EventFanOut {
  readonly #deps: EventFanOutDeps;
  readonly #servers: RoomServers;
  /** Events of this server, and state events of other servers. */
  readonly #buffer: FactBuffer<{ readonly stored: StoredEvent; readonly position: number }>;
  /** Stream position up to which events were fanned out. */
  #fannedOut = 0;

  constructor(deps: EventFanOutDeps) {
    this.#deps = deps;
    this.#servers = new RoomServers(deps.engine, deps.caches);
    this.#buffer = new FactBuffer(deps.streams);
    deps.engine.stream.subscribe((fact, position) => this.#add(fact, position));
  }

  /** Fans out all events in `(after, upTo]` of the stream, in order. */
  async fanOut(after: number, upTo: number): Promise<void> {
    const facts = this.#buffer.take(after, upTo);
    if (facts === undefined) return this.#fanOutStored(after, upTo);
    for (const { stored } of facts) await this.#fanOut(stored);
  }

  #add({ stored }: RoomFact, position: number): void {
    if (!this.#isSentByUs(stored) && stored.event.stateKey === undefined) return;
    this.#buffer.add({ stored, position });
  }

  async #fanOutStored(after: number, upTo: number): Promise<void> {
    for (let from = after; from < upTo; ) {
      const events = await this.#deps.engine.events.between(from, upTo, pageSize);
      for (const stored of events) {
        await this.#fanOut(stored);
      }
      const last = events.at(-1)?.stream;
      if (events.length < pageSize || last === undefined) break;
      from = last;
    }
  }

  async #fanOut(stored: StoredEvent): Promise<void> {
    if (!isAccepted(stored) || stored.stream <= this.#fannedOut) return;
    // Dummy events are not sent: other servers fetch them when an event refers to them. Otherwise servers
    // would answer each other's dummy events without end.
    const isSent = this.#isSentByUs(stored) && !isDummyEvent(stored.event);
    const current = isSent ? await this.#deliver(stored) : stored;
    await this.#servers.advancePast(current);
    this.#fannedOut = stored.stream;
  }

  /** Delivers an event. @returns the event; read again if it was stored while the state of the room was partial */
  async #deliver(event: Placed): Promise<StoredEvent> {
    const { engine, deliver } = this.#deps;
    const { roomId } = event.event;
    const head = engine.heads.peek(roomId) ?? (await engine.heads.get(roomId));
    if (!head) return event;
    // The states before and after an event that was stored while the state of the room was partial were revised later.
    const isRevised = event.stream < head.completedAt;
    const stored = isRevised ? ((await engine.events.get(event.nid)) ?? event) : event;
    if (!isAccepted(stored)) return stored;
    const destinations = new Set((await this.#servers.before(stored, head)).keys());
    const invitedServer = await this.#serverOfEndedInvite(stored);
    if (invitedServer !== undefined) destinations.add(invitedServer);
    const recipients = [...destinations].filter((server) => this.#isRecipient(server, stored));
    if (recipients.length > 0) deliver(outgoingPdu(stored), recipients);
    return stored;
  }

  /**
   * Returns the server of the user whose invite or knock the event ends. That server receives the event even if it is
   * not in the room. An invite itself is sent in a separate request.
   */
  async #serverOfEndedInvite(stored: Placed): Promise<string | undefined> {
    const { type, stateKey, content } = stored.event;
    const endsMembership =
      type === 'm.room.member' && ['leave', 'ban'].includes(String(content['membership']));
    if (!endsMembership || stateKey === undefined || !(await this.#wasInvitedOrKnocking(stored)))
      return undefined;
    return serverOfUser(stateKey);
  }

  /** Whether the event replaces an invite or a knock. The user's server knows about both. */
  async #wasInvitedOrKnocking({ replaces }: Placed): Promise<boolean> {
    const before = replaces === undefined ? undefined : await this.#deps.engine.events.get(replaces);
    const membership = before?.event.content['membership'];
    return membership === 'invite' || membership === 'knock';
  }

  #isSentByUs({ event, distribute, acceptedElsewhere }: StoredEvent): boolean {
    return distribute || (!acceptedElsewhere && serverOfUser(event.sender) === this.#deps.serverName);
  }

  #isRecipient(server: string, { event }: StoredEvent): boolean {
    const { serverName, isDestination } = this.#deps;
    return server !== serverName && server !== serverOfUser(event.sender) && isDestination(server);
  }
}

const isAccepted = (stored: StoredEvent): stored is Placed =>
  stored.stream !== undefined && stored.stream > 0 && !stored.rejected && !stored.softFailed;
