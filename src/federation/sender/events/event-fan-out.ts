import type { StreamReader } from '../../../kernel/streams/index.ts';
import { isDummyEvent, serverOfUser } from '../../../protocol/index.ts';
import type { RoomFact, RoomReader, StoredEvent } from '../../../room-engine/index.ts';
import { type OutgoingPdu, outgoingPdu } from './outgoing-pdu.ts';
import { RoomServers } from './room-servers.ts';

export interface EventFanOutDeps {
  readonly serverName: string;
  readonly engine: Pick<RoomReader, 'stream' | 'events' | 'heads' | 'groups'>;
  readonly streams: Pick<StreamReader, 'current'>;
  /** Whether there is federation with a server. */
  readonly isDestination: (serverName: string) => boolean;
  /** Takes an event and all servers that it is for. */
  readonly deliver: (pdu: OutgoingPdu, destinations: readonly string[]) => void;
}

type Placed = StoredEvent & { readonly stream: number };

/** Facts that wait for the follower; when there are more, events are read from the disk. */
const maxFacts = 10_000;

/** Events that are read at a time. */
const page = 500;

/**
 * Hands the events of this server to the servers that are in their rooms. Events come from the stream as it is
 * published, or from the disk after a restart.
 */
export class EventFanOut {
  readonly #deps: EventFanOutDeps;
  readonly #servers: RoomServers;
  /** Events to be sent, and state events of others, in order; complete after `#factsSince`. */
  #facts: { readonly stored: StoredEvent; readonly position: number }[] = [];
  #factsSince: number;
  /** Events up to this place on the stream were handed out. */
  #fannedOut = 0;

  constructor(deps: EventFanOutDeps) {
    this.#deps = deps;
    this.#servers = new RoomServers(deps.engine);
    this.#factsSince = deps.streams.current;
    deps.engine.stream.subscribe((fact, position) => this.#take(fact, position));
  }

  /** Hands out all events in `(after, upTo]` of the stream, in order. */
  async fanOut(after: number, upTo: number): Promise<void> {
    const isComplete = after >= this.#factsSince;
    const end = this.#facts.findIndex(({ position }) => position > upTo);
    const facts = this.#facts.splice(0, end === -1 ? this.#facts.length : end);
    // Should this fail, it is the disk that is read the next time.
    this.#factsSince = Math.max(this.#factsSince, upTo);
    if (!isComplete) return this.#fanOutStored(after, upTo);
    for (const { stored } of facts) await this.#fanOut(stored);
  }

  #take({ stored }: RoomFact, position: number): void {
    if (!this.#isSentByUs(stored) && stored.event.stateKey === undefined) return;
    this.#facts.push({ stored, position });
    if (this.#facts.length <= maxFacts) return;
    this.#facts = [];
    this.#factsSince = position;
  }

  async #fanOutStored(after: number, upTo: number): Promise<void> {
    for (let from = after; from < upTo; ) {
      const events = await this.#deps.engine.events.between(from, upTo, page);
      for (const stored of events) {
        await this.#fanOut(stored);
      }
      const last = events.at(-1)?.stream;
      if (events.length < page || last === undefined) break;
      from = last;
    }
  }

  async #fanOut(stored: StoredEvent): Promise<void> {
    if (!isPlaced(stored) || stored.stream <= this.#fannedOut) return;
    // Others ask for those when an event comes that names them: else each server would answer each other's.
    if (this.#isSentByUs(stored) && !isDummyEvent(stored.event)) await this.#deliver(stored);
    await this.#servers.advancePast(stored);
    this.#fannedOut = stored.stream;
  }

  async #deliver(stored: Placed): Promise<void> {
    const { engine, deliver } = this.#deps;
    const { roomId } = stored.event;
    const head = engine.heads.peek(roomId) ?? (await engine.heads.get(roomId));
    if (!head) return;
    const destinations = new Set((await this.#servers.before(stored, head)).keys());
    const target = await this.#serverOfEndedInvite(stored);
    if (target !== undefined) destinations.add(target);
    const wanted = [...destinations].filter((server) => this.#isWanted(server, stored));
    if (wanted.length > 0) deliver(outgoingPdu(stored), wanted);
  }

  /**
   * The server of a user who was only invited, or had knocked, and is not any more: it learns that from the event.
   * Users who are invited hear of it through a request of its own.
   */
  async #serverOfEndedInvite(stored: Placed): Promise<string | undefined> {
    const { type, stateKey, content } = stored.event;
    const isEnd = type === 'm.room.member' && ['leave', 'ban'].includes(String(content['membership']));
    if (!isEnd || stateKey === undefined || !(await this.#wasInvitedOrKnocking(stored))) return undefined;
    return serverOfUser(stateKey);
  }

  /** Whether the user whose membership the event ends had one that their server knows of. */
  async #wasInvitedOrKnocking({ replaces }: Placed): Promise<boolean> {
    const before = replaces === undefined ? undefined : await this.#deps.engine.events.get(replaces);
    const membership = before?.event.content['membership'];
    return membership === 'invite' || membership === 'knock';
  }

  #isSentByUs({ event, distribute }: StoredEvent): boolean {
    return distribute || serverOfUser(event.sender) === this.#deps.serverName;
  }

  #isWanted(server: string, { event }: StoredEvent): boolean {
    const { serverName, isDestination } = this.#deps;
    return server !== serverName && server !== serverOfUser(event.sender) && isDestination(server);
  }
}

const isPlaced = (stored: StoredEvent): stored is Placed =>
  stored.stream !== undefined && stored.stream > 0 && !stored.rejected && !stored.softFailed;
