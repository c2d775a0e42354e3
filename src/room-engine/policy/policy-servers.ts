import type { Clock } from '../../kernel/clock.ts';
import {
  isJsonObject,
  isSignedByPolicyServer,
  type JsonObject,
  MatrixError,
  needsPolicyServerSignature,
  type PolicyServer,
  parsePolicyServer,
  policyEventType,
  policyKeyId,
  type RoomEvent,
  unknown,
  withPolicySignature,
} from '../../protocol/index.ts';
import type { VerifiedEvent } from '../placement/verified-event.ts';
import type { StoredEvent } from '../stored-event.ts';
import type { EventStore } from '../timeline/event-store.ts';
import type { RoomHead } from '../timeline/room-head.ts';
import { policyServerError } from './policy-server-error.ts';

/** How long a request may take, and what gives it up. */
export interface RemoteRequestOptions {
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds. */
  readonly timeout?: number | undefined;
}

/** The way to policy servers, as rooms need it. */
export interface PolicyServerClient {
  /**
   * Asks for a signature. Source: server-server API, `POST /_matrix/policy/v1/sign`.
   * @returns what the server has answered: signatures by server and key id, if it is as it should be
   * @throws when the server can not be asked, or refuses
   */
  sign(server: string, pdu: JsonObject, request?: RemoteRequestOptions): Promise<JsonObject>;
}

/** Milliseconds for a policy server to answer: about an event of a local user, and about one of another server. */
const signTimeout = { own: 30_000, received: 10_000 } as const;

/** For so many milliseconds a policy server that did not answer is not asked about events of other servers. */
const backoff = 10_000;

/** Policy servers that are remembered not to have answered. */
const maxBackoffs = 1_000;

export interface PolicyServersDeps {
  readonly serverName: string;
  readonly events: EventStore;
  readonly clock: Clock;
  /** Absent where there is no way to other servers: then none of them is a policy server. */
  readonly peers: PolicyServerClient | undefined;
}

/** What the current state of a room says about its policy server. */
interface NamedPolicyServer {
  readonly stored: StoredEvent;
  readonly policy: PolicyServer | undefined;
}

/**
 * Servers that rooms have chosen to look at their events before anybody else does.
 * Source: server-server API, "Policy Servers".
 */
export class PolicyServers {
  readonly #deps: PolicyServersDeps;
  readonly #named = new WeakMap<RoomHead, NamedPolicyServer>();
  /** Events that were found signed, and by which key. */
  readonly #signed = new WeakMap<RoomEvent, PolicyServer>();
  /** Until when a policy server is not asked about events of other servers; monotonic. */
  readonly #backoffs = new Map<string, number>();

  constructor(deps: PolicyServersDeps) {
    this.#deps = deps;
  }

  /** Whether `of` has an answer: for rooms that have never named a policy server, a look into memory. */
  isLoaded(head: RoomHead): boolean {
    const entry = head.entry(policyEventType, '');
    return entry === undefined || this.#named.get(head)?.stored.nid === entry.nid;
  }

  async load(head: RoomHead): Promise<void> {
    const entry = head.entry(policyEventType, '');
    if (!entry || this.isLoaded(head)) return;
    const stored = await this.#deps.events.get(entry.nid);
    if (!stored) throw new Error(`event ${entry.nid} of a room's state is missing`);
    this.#named.set(head, { stored, policy: parsePolicyServer(stored.event.content) });
  }

  /** The policy server that the current state of a room names; it must be loaded. */
  serverOf(head: RoomHead): PolicyServer | undefined {
    const entry = head.entry(policyEventType, '');
    if (!entry) return undefined;
    const said = this.#named.get(head);
    if (said?.stored.nid !== entry.nid) throw new Error('the policy of a room was not loaded');
    const { redactedBy } = this.#deps.events.peek(entry.nid) ?? said.stored;
    const { policy } = said;
    if (!policy || redactedBy !== undefined || !this.#deps.peers) return undefined;
    // This server is none; who else answers under its name may sign for other servers.
    if (policy.serverName === this.#deps.serverName) return undefined;
    return head.servers.has(policy.serverName) ? policy : undefined;
  }

  /** Whether a policy server has to be asked before an event of a local user is sent. It must be loaded. */
  needsSignature(head: RoomHead, draft: { type: string; stateKey?: string | undefined }): boolean {
    return needsPolicyServerSignature(draft) && this.serverOf(head) !== undefined;
  }

  /** Whether an event has the signature that the room wants, or needs none. It must be loaded. */
  hasRequiredSignature(head: RoomHead, event: RoomEvent): boolean {
    const policy = needsPolicyServerSignature(event) ? this.serverOf(head) : undefined;
    return policy === undefined || this.#isSigned(event, policy);
  }

  /**
   * An event of this server with the signature that the room wants; as it is where it needs none.
   * @throws MatrixError as the policy server says, or M_UNKNOWN with 502 when it says nothing that makes sense
   */
  async sign(head: RoomHead, one: VerifiedEvent): Promise<VerifiedEvent> {
    const policy = await this.#missingSigner(head, one.event);
    return policy ? this.#ask(policy, one, signTimeout.own) : one;
  }

  /** As `vouched`, of an event that others have sent: without the signature where it can not be had. */
  async trySign(head: RoomHead, one: VerifiedEvent): Promise<VerifiedEvent> {
    const policy = await this.#missingSigner(head, one.event);
    if (!policy || this.#isBackingOff(policy.serverName)) return one;
    try {
      return await this.#ask(policy, one, signTimeout.received);
    } catch (error) {
      if (!(error instanceof MatrixError)) throw error;
      if (error.status >= 500) this.#backOff(policy.serverName);
      return one;
    }
  }

  /** The policy server whose signature is missing. */
  async #missingSigner(head: RoomHead, event: RoomEvent): Promise<PolicyServer | undefined> {
    await this.load(head);
    return this.hasRequiredSignature(head, event) ? undefined : this.serverOf(head);
  }

  #isSigned(event: RoomEvent, policy: PolicyServer): boolean {
    if (this.#signed.get(event) === policy) return true;
    const isSigned = isSignedByPolicyServer(event, policy);
    if (isSigned) this.#signed.set(event, policy);
    return isSigned;
  }

  async #ask(policy: PolicyServer, { event }: VerifiedEvent, timeout: number): Promise<VerifiedEvent> {
    const { peers } = this.#deps;
    const { serverName } = policy;
    const signature = await peers!.sign(serverName, event.pdu, { timeout }).then(
      (answer) => signatureIn(answer, serverName),
      (error: unknown) => {
        throw policyServerError(error);
      },
    );
    const signed = signature === undefined ? undefined : withPolicySignature(event, policy, signature);
    if (signed && this.#isSigned(signed.event, policy)) return signed;
    throw unknown('The policy server of the room has given no valid signature', 502);
  }

  #isBackingOff(serverName: string): boolean {
    return (this.#backoffs.get(serverName) ?? 0) > this.#deps.clock.monotonic();
  }

  #backOff(serverName: string): void {
    if (this.#backoffs.size >= maxBackoffs) this.#backoffs.clear();
    this.#backoffs.set(serverName, this.#deps.clock.monotonic() + backoff);
  }
}

function signatureIn(answer: JsonObject, serverName: string): string | undefined {
  const own = Object.hasOwn(answer, serverName) ? answer[serverName] : undefined;
  const signature = isJsonObject(own) ? own[policyKeyId] : undefined;
  return typeof signature === 'string' ? signature : undefined;
}
