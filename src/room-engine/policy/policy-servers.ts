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
import type { StoredEvent } from '../stored-event.ts';
import type { EventStore } from '../timeline/event-store.ts';
import type { RoomHead } from '../timeline/room-head.ts';
import type { VerifiedEvent } from '../verified-event.ts';
import { policyServerError } from './policy-server-error.ts';

/** The timeout of a request to a remote server, and its abort signal. */
export interface RemoteRequestOptions {
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds. */
  readonly timeout?: number | undefined;
}

/** Sends requests to policy servers; supplied at composition. */
export interface PolicyServerClient {
  /**
   * Requests a signature. Source: server-server API, `POST /_matrix/policy/v1/sign`.
   * @returns the response, unverified: signatures by server and key id
   * @throws when the server cannot be reached, or refuses
   */
  sign(server: string, pdu: JsonObject, request?: RemoteRequestOptions): Promise<JsonObject>;
}

/** Request timeouts in milliseconds, for events of local users and for received events. */
const signTimeout = { localEvent: 30_000, receivedEvent: 10_000 } as const;

/** A policy server without a valid response is not asked to sign received events for this many milliseconds. */
const backoffMs = 10_000;

/** Maximum number of policy servers whose backoff is remembered. */
const maxBackoffs = 1_000;

export interface PolicyServersDeps {
  readonly serverName: string;
  readonly events: EventStore;
  readonly clock: Clock;
  /** `undefined` where federation is off: then no policy server receives requests. */
  readonly client: PolicyServerClient | undefined;
}

/** The policy server that the current state of a room names. */
interface NamedPolicyServer {
  /** The state event that names it. */
  readonly stored: StoredEvent;
  /** `undefined` when the content of the event is invalid. */
  readonly policy: PolicyServer | undefined;
}

/**
 * Policy servers. They check the events of their rooms before other servers accept them.
 * Source: server-server API, "Policy Servers".
 */
export class PolicyServers {
  readonly #deps: PolicyServersDeps;
  readonly #policyServers = new WeakMap<RoomHead, NamedPolicyServer>();
  /** Events with a verified signature, and the policy server that signed. */
  readonly #signed = new WeakMap<RoomEvent, PolicyServer>();
  /** The end of each backoff in monotonic milliseconds, by the name of the policy server. */
  readonly #backoffs = new Map<string, number>();

  constructor(deps: PolicyServersDeps) {
    this.#deps = deps;
  }

  /** Returns whether `serverOf` can be called: the policy of the room is loaded, or the room names no policy server. */
  isLoaded(head: RoomHead): boolean {
    const entry = head.entry(policyEventType, '');
    return entry === undefined || this.#policyServers.get(head)?.stored.nid === entry.nid;
  }

  /** Reads the event that names the room's policy server, so that `serverOf` can be called. */
  async load(head: RoomHead): Promise<void> {
    const entry = head.entry(policyEventType, '');
    if (!entry || this.isLoaded(head)) return;
    const stored = await this.#deps.events.get(entry.nid);
    if (!stored) throw new Error(`event ${entry.nid} of a room's state is missing`);
    this.#policyServers.set(head, { stored, policy: parsePolicyServer(stored.event.content) });
  }

  /**
   * Returns the policy server that the current state of a room names; `undefined` also when the naming event is invalid
   * or redacted, when that server is not in the room or is this server, and when federation is off. Call `load` before.
   */
  serverOf(head: RoomHead): PolicyServer | undefined {
    const entry = head.entry(policyEventType, '');
    if (!entry) return undefined;
    const loaded = this.#policyServers.get(head);
    if (loaded?.stored.nid !== entry.nid) throw new Error('the policy of a room was not loaded');
    const { redactedBy } = this.#deps.events.peek(entry.nid) ?? loaded.stored;
    const { policy } = loaded;
    if (!policy || redactedBy !== undefined || !this.#deps.client) return undefined;
    // This server never acts as a policy server, so a room that names it has none.
    if (policy.serverName === this.#deps.serverName) return undefined;
    return head.servers.has(policy.serverName) ? policy : undefined;
  }

  /** Returns whether an event of a local user needs the signature of a policy server. Call `load` before. */
  needsSignature(head: RoomHead, draft: { type: string; stateKey?: string | undefined }): boolean {
    return needsPolicyServerSignature(draft) && this.serverOf(head) !== undefined;
  }

  /** Returns whether an event has the signature that the room requires, or needs none. Call `load` before. */
  hasRequiredSignature(head: RoomHead, event: RoomEvent): boolean {
    const policy = needsPolicyServerSignature(event) ? this.serverOf(head) : undefined;
    return policy === undefined || this.#isSigned(event, policy);
  }

  /**
   * Returns an event of this server with the signature that the room requires; unchanged where it needs none.
   * @throws MatrixError of the policy server, or M_UNKNOWN with 502 when it cannot be reached or its response is invalid
   */
  async sign(head: RoomHead, verified: VerifiedEvent): Promise<VerifiedEvent> {
    const policy = await this.#missingSigner(head, verified.event);
    return policy ? this.#requestSignature(policy, verified, signTimeout.localEvent) : verified;
  }

  /**
   * Like `sign`, for a received event: returns it without the signature if the policy server returns none or is in
   * backoff.
   */
  async trySign(head: RoomHead, verified: VerifiedEvent): Promise<VerifiedEvent> {
    const policy = await this.#missingSigner(head, verified.event);
    if (!policy || this.#isBackingOff(policy.serverName)) return verified;
    try {
      return await this.#requestSignature(policy, verified, signTimeout.receivedEvent);
    } catch (error) {
      if (!(error instanceof MatrixError)) throw error;
      if (error.status >= 500) this.#backOff(policy.serverName);
      return verified;
    }
  }

  /** Returns the policy server whose signature is missing. */
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

  async #requestSignature(
    policy: PolicyServer,
    { event }: VerifiedEvent,
    timeout: number,
  ): Promise<VerifiedEvent> {
    const { client } = this.#deps;
    const { serverName } = policy;
    const signature = await client!.sign(serverName, event.pdu, { timeout }).then(
      (answer) => signatureIn(answer, serverName),
      (error: unknown) => {
        throw policyServerError(error);
      },
    );
    const signed = signature === undefined ? undefined : withPolicySignature(event, policy, signature);
    if (signed && this.#isSigned(signed.event, policy)) return signed;
    throw unknown('The policy server of the room returned no valid signature', 502);
  }

  #isBackingOff(serverName: string): boolean {
    return (this.#backoffs.get(serverName) ?? 0) > this.#deps.clock.monotonic();
  }

  #backOff(serverName: string): void {
    if (this.#backoffs.size >= maxBackoffs) this.#backoffs.clear();
    this.#backoffs.set(serverName, this.#deps.clock.monotonic() + backoffMs);
  }
}

function signatureIn(answer: JsonObject, serverName: string): string | undefined {
  const signatures = Object.hasOwn(answer, serverName) ? answer[serverName] : undefined;
  const signature = isJsonObject(signatures) ? signatures[policyKeyId] : undefined;
  return typeof signature === 'string' ? signature : undefined;
}
