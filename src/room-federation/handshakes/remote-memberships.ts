import type { KeyedMutex } from '../../kernel/keyed-mutex.ts';
import { LoadOnce } from '../../kernel/load-once.ts';
import { type JsonObject, MatrixError, notFound } from '../../protocol/index.ts';
import type {
  EventToSend,
  Placement,
  PrejoinKeys,
  RoomHead,
  StoredEvent,
  UserRoom,
} from '../../room-engine/index.ts';
import { isResidentForUser, type RoomWriter } from '../../room-engine/index.ts';
import { type CandidateDeps, CandidateServers } from './candidate-servers.ts';
import type { HandshakeDeps } from './handshake.ts';
import { RemoteJoin } from './joining/remote-join.ts';
import type { ComplexityLimit } from './joining/room-complexity.ts';
import type { StateCompletion } from './joining/state-completion.ts';
import type { PendingLeaves } from './leaving/pending-leaves.ts';
import { RemoteLeave } from './leaving/remote-leave.ts';
import { RemoteInvite } from './remote-invite.ts';
import { RemoteKnock } from './remote-knock.ts';

export interface RemoteMembershipsDeps extends HandshakeDeps, CandidateDeps {
  readonly engine: RoomWriter;
  readonly placement: Placement;
  readonly prejoinKeys: PrejoinKeys;
  readonly complexity: ComplexityLimit;
  readonly completion: Pick<StateCompletion, 'begin'>;
  readonly pendingLeaves: Pick<PendingLeaves, 'replace'>;
  /** One gets into a room at a time. */
  readonly roomMutex: KeyedMutex;
}

/** Who wants to get into which room, and with whose help. */
export interface RemoteMembershipRequest {
  readonly userId: string;
  readonly roomId: string;
  /** The servers that the client named, or that the room's alias led to. */
  readonly via?: readonly string[] | undefined;
  /** In place of all others: who alone can help. */
  readonly only?: readonly string[] | undefined;
  /** The content of the membership event. */
  readonly content: JsonObject;
}

/** Memberships in rooms that this server is not in, and of users of other servers. */
export class RemoteMemberships {
  readonly #deps: RemoteMembershipsDeps;
  readonly #candidates: CandidateServers;
  readonly #join: RemoteJoin;
  readonly #leave: RemoteLeave;
  readonly #knock: RemoteKnock;
  readonly #invite: RemoteInvite;
  /** One handshake at a time about each room: whoever comes second may find that this server is in it. */
  readonly #joining = new LoadOnce<string, StoredEvent | undefined>();

  constructor(deps: RemoteMembershipsDeps) {
    this.#deps = deps;
    this.#candidates = new CandidateServers(deps);
    this.#join = new RemoteJoin(deps);
    this.#leave = new RemoteLeave(deps);
    this.#knock = new RemoteKnock(deps);
    this.#invite = new RemoteInvite(deps);
  }

  /**
   * Joins with the help of another server. What a user asks for several times at once is done once.
   * @returns `undefined` when this server has got into the room in the meantime: then no help is needed
   * @throws MatrixError that says best why it did not succeed
   */
  join(place: RemoteMembershipRequest): Promise<StoredEvent | undefined> {
    const { userId, roomId } = place;
    const key = JSON.stringify([userId, roomId]);
    const { roomMutex } = this.#deps;
    return this.#joining.run(key, () => roomMutex.run(roomId, () => this.#joinNow(place)));
  }

  async #joinNow(place: RemoteMembershipRequest): Promise<StoredEvent | undefined> {
    const { engine, serverName, complexity, peers } = this.#deps;
    const { userId, roomId, via, only } = place;
    if (!only && (await isResidentForUser(engine, userId, roomId, serverName))) return undefined;
    await this.#check(place);
    const servers = only ?? (await this.#candidates.of(userId, roomId, via));
    if (servers.length === 0) throw notFound('No server is known that is in the room');
    const isLimited = !only && (await complexity.appliesTo(userId));
    const isTold = isLimited && (await complexity.checkBeforeJoin(peers, servers, roomId));
    // What is left out of a room can not be measured.
    const omitMembers = !isLimited || isTold;
    const joined = await this.#join.join({ ...place, servers, omitMembers });
    if ((await engine.heads.get(roomId))?.partial) this.#deps.completion.begin(roomId);
    if (isLimited) await this.#leaveIfTooMuch(userId, roomId);
    return joined;
  }

  async #leaveIfTooMuch(userId: string, roomId: string): Promise<void> {
    const { engine, complexity } = this.#deps;
    const head = await engine.heads.get(roomId);
    try {
      if (head) complexity.checkAfterJoin(head);
    } catch (error) {
      const leave = { type: 'm.room.member', stateKey: userId, sender: userId };
      await engine.timeline.append(roomId, { ...leave, content: { membership: 'leave' } });
      throw error;
    }
  }

  /** As `join`. */
  knock(place: RemoteMembershipRequest): Promise<StoredEvent | undefined> {
    const { userId, roomId, via } = place;
    const knock = async () => {
      await this.#check(place);
      const servers = await this.#candidates.of(userId, roomId, via);
      return this.#knock.knock({ ...place, servers });
    };
    return this.#deps.roomMutex.run(roomId, () => this.#outside(userId, roomId, knock));
  }

  /** @throws MatrixError of a check that rejects the join or knock */
  async #check({ userId, roomId, content }: RemoteMembershipRequest): Promise<void> {
    const { checks } = this.#deps.engine;
    if (checks.isEmpty) return;
    await checks.pass({ type: 'm.room.member', stateKey: userId, sender: userId, content }, { roomId });
  }

  /**
   * Turns an invite down or takes a knock back; that succeeds in any case.
   * @param present what ends
   * @returns as `join`
   */
  leave(userId: string, present: UserRoom, content: JsonObject): Promise<StoredEvent | undefined> {
    const { engine } = this.#deps;
    const { roomId, eventNid } = present;
    return this.#outside(userId, roomId, async () => {
      const stored = await engine.events.get(eventNid);
      if (!stored) throw new Error('a membership event is missing');
      const recipients = await this.#candidates.leaveRecipients(userId, present);
      return this.#leave.leave({ present: stored, userId, ...recipients, content });
    });
  }

  /** @returns `undefined` when this server is in the room, or has got into it while the others were asked */
  async #outside(
    userId: string,
    roomId: string,
    work: () => Promise<StoredEvent>,
  ): Promise<StoredEvent | undefined> {
    const { engine, serverName } = this.#deps;
    const isInside = () => isResidentForUser(engine, userId, roomId, serverName);
    if (await isInside()) return undefined;
    try {
      return await work();
    } catch (error) {
      if (error instanceof MatrixError && (await isInside())) return undefined;
      throw error;
    }
  }

  /** Invites a user of another server. @throws MatrixError */
  invite(head: RoomHead, draft: EventToSend & { readonly stateKey: string }): Promise<StoredEvent> {
    return this.#invite.invite(head, draft);
  }
}
