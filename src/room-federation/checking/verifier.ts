import type { Clock } from '../../kernel/clock.ts';
import { type SignatureToVerify, verifyInBackground } from '../../kernel/signing/index.ts';
import { TimeSlices } from '../../kernel/time-slices.ts';
import {
  checkIntegrity,
  decodeBase64,
  isJsonObject,
  type JsonValue,
  MatrixError,
  policyKeyId,
  type ReceivedEvent,
  type ReferenceLimits,
  type RoomEvent,
  type RoomVersion,
  receivePdu,
  requiredSigners,
  type ServerKey,
  type ServerKeyLookup,
  type VerifySignature,
} from '../../protocol/index.ts';
import type { VerifiedEvent } from '../../room-engine/index.ts';
import type { EventKeys, WantedEventKey } from '../remote-servers.ts';
import type { MissingKeys } from './missing-keys.ts';

/** Why an event fails the checks. */
export interface Refusal {
  readonly error: string;
  /** Whether a key could not be fetched, so that the event is to be fetched again (`MissingKeys`). */
  readonly isTemporary?: boolean;
}

/** Maximum number of events that are verified on this thread: handing them to another thread would take longer. */
const fewEvents = 2;

/** Maximum number of signatures of one server on one event whose keys are looked up. */
const maxSignatures = 20;

/**
 * Checks format, size, signatures and hash of events from remote servers. Signatures of more than a few
 * events are verified on other threads (decision 0085), since they take the most time.
 * Source: server-server API, "Checks performed on receipt of a PDU", checks 1 to 3.
 */
export class Verifier {
  readonly #keys: EventKeys;
  readonly #missing: MissingKeys;
  readonly #clock: Clock;
  /** Shared by all steps: they run one after another in the same turn of the event loop. */
  readonly #slices: TimeSlices;

  constructor({
    keys,
    missing,
    clock,
  }: {
    readonly keys: EventKeys;
    readonly missing: MissingKeys;
    readonly clock: Clock;
  }) {
    this.#keys = keys;
    this.#missing = missing;
    this.#clock = clock;
    this.#slices = new TimeSlices(clock);
  }

  /** Does checks 1 to 3. The results have the order of `jsons`. */
  async verify(
    version: RoomVersion,
    jsons: readonly JsonValue[],
    references?: ReferenceLimits,
  ): Promise<(VerifiedEvent | Refusal)[]> {
    const read = await this.read(version, jsons, references);
    const received = read.filter((one): one is ReceivedEvent => !isRefusal(one));
    const checked = (await this.check(received)).values();
    return read.map((one) => (isRefusal(one) ? one : checked.next().value!));
  }

  /** Does check 1, the event format. Senders and ids of the returned events are unverified claims. */
  async read(
    version: RoomVersion,
    jsons: readonly JsonValue[],
    references?: ReferenceLimits,
  ): Promise<(ReceivedEvent | Refusal)[]> {
    const read: (ReceivedEvent | Refusal)[] = [];
    for (const json of jsons) {
      await this.#slices.pauseIfDue();
      try {
        read.push(receivePdu(json, version, references));
      } catch (error) {
        if (!(error instanceof MatrixError)) throw error;
        read.push({ error: error.message });
      }
    }
    return read;
  }

  /** Does checks 2 and 3, signatures and hash. Fetches the keys for all events together. */
  async check(received: readonly ReceivedEvent[]): Promise<(VerifiedEvent | Refusal)[]> {
    if (received.length === 0) return [];
    const now = this.#clock.now();
    const keyOf = await this.#keys.findAll(await wantedKeysOf(received, now, this.#slices));
    const verify = received.length > fewEvents ? await this.#verified(received, keyOf, now) : undefined;
    const checked: (VerifiedEvent | Refusal)[] = [];
    for (const one of received) {
      await this.#slices.pauseIfDue();
      const integrity = checkIntegrity(one, keyOf, now, verify);
      if (integrity.outcome === 'reject')
        checked.push({ error: integrity.reason, isTemporary: this.#awaitsKey(one, keyOf, now) });
      else checked.push({ event: integrity.event, json: integrity.json });
    }
    return checked;
  }

  /** Whether a required server has signed only with keys that could not be fetched and may still become known. */
  #awaitsKey({ event }: ReceivedEvent, keyOf: ServerKeyLookup, now: number): boolean {
    const validUntil = neededValidity(event, now);
    let isAwaited = false;
    for (const serverName of requiredSigners(event) ?? []) {
      const keyIds = keyIdsOf(event.pdu.signatures, serverName);
      const lacksAll = keyIds.every((keyId) => needsFetch(keyOf(serverName, keyId), validUntil));
      if (!lacksAll) continue;
      for (const keyId of keyIds) if (this.#missing.note(serverName, keyId)) isAwaited = true;
    }
    return isAwaited;
  }

  /** Verifies in the background all signatures that `checkIntegrity` will ask about. */
  async #verified(
    received: readonly ReceivedEvent[],
    keyOf: ServerKeyLookup,
    now: number,
  ): Promise<VerifySignature> {
    const asked: (SignatureToVerify & { readonly signature64: string })[] = [];
    const note: VerifySignature = (key, text, signature64) => {
      const signature = decodeBase64(signature64);
      if (signature) asked.push({ key: key.publicKey, text, signature, signature64 });
      return signature !== undefined;
    };
    for (const one of received) {
      await this.#slices.pauseIfDue();
      checkIntegrity(one, keyOf, now, note);
    }
    const right = await verifyInBackground(asked);
    const verified = new Map<string, Pick<SignatureToVerify, 'key' | 'text'>>();
    for (const [index, one] of asked.entries()) if (right[index]) verified.set(one.signature64, one);
    return (key, text, signature64) => {
      const found = verified.get(signature64);
      return found?.text === text && found.key === key.publicKey;
    };
  }
}

export const isRefusal = (value: object): value is Refusal => 'error' in value;

/** The keys to look up: each key once, valid until the latest event that needs it. */
async function wantedKeysOf(
  received: readonly ReceivedEvent[],
  now: number,
  slices: TimeSlices,
): Promise<WantedEventKey[]> {
  const wants = new Map<string, WantedEventKey>();
  await slices.each(received, ({ event }) => {
    const validUntil = neededValidity(event, now);
    for (const serverName of requiredSigners(event) ?? []) {
      for (const keyId of keyIdsOf(event.pdu.signatures, serverName)) {
        const name = `${serverName} ${keyId}`;
        if ((wants.get(name)?.validUntil ?? -1) < validUntil)
          wants.set(name, { serverName, keyId, validUntil });
      }
    }
  });
  return [...wants.values()];
}

/** Until when the keys of an event must be valid, in milliseconds since the epoch; 0 when it does not matter. */
function neededValidity({ version, originServerTs }: RoomEvent, now: number): number {
  return version.enforceKeyValidity ? Math.max(0, Math.min(originServerTs, now)) : 0;
}

/** Whether a key is unknown, or its server has to confirm that it is still valid. */
function needsFetch(key: ServerKey | undefined, validUntil: number): boolean {
  return key === undefined || (key.expiredTs === undefined && key.validUntilTs < validUntil);
}

function keyIdsOf(signatures: JsonValue | undefined, serverName: string): readonly string[] {
  if (!isJsonObject(signatures) || !Object.hasOwn(signatures, serverName)) return [];
  const own = signatures[serverName];
  if (!isJsonObject(own)) return [];
  return Object.keys(own)
    .filter((keyId) => keyId.startsWith('ed25519:') && keyId !== policyKeyId)
    .slice(0, maxSignatures);
}
