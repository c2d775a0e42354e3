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

/**
 * Maximum number of events whose signatures are verified on this thread: for so few events, the use of another thread
 * would take longer.
 */
const maxEventsOnThisThread = 2;

/** Maximum number of signatures of one server on one event whose keys are looked up. */
const maxSignatures = 20;

/**
 * Checks format, size, signatures and hash of events from remote servers. Signatures of more than a few
 * events are verified on other threads (decision 0085), because they take the most time.
 * Source: server-server API, "Checks performed on receipt of a PDU", checks 1 to 3.
 */
export class Verifier {
  readonly #keys: EventKeys;
  readonly #missing: MissingKeys;
  readonly #clock: Clock;
  /** Shared by all checks, so that the time slices of checks that run at the same time do not add up. */
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

  /**
   * Does checks 1 to 3 of "Checks performed on receipt of a PDU". The results are in the order of `jsons`.
   * @param references `unlimited` if the events may have more auth and previous events than allowed, as old events may
   */
  async verify(
    version: RoomVersion,
    jsons: readonly JsonValue[],
    references?: ReferenceLimits,
  ): Promise<(VerifiedEvent | Refusal)[]> {
    const read = await this.read(version, jsons, references);
    const received = read.filter((result): result is ReceivedEvent => !isRefusal(result));
    const checked = (await this.check(received)).values();
    return read.map((result) => (isRefusal(result) ? result : checked.next().value!));
  }

  /** Does check 1, the event format. Senders and ids of the returned events are unverified claims. */
  async read(
    version: RoomVersion,
    jsons: readonly JsonValue[],
    references?: ReferenceLimits,
  ): Promise<(ReceivedEvent | Refusal)[]> {
    const read: (ReceivedEvent | Refusal)[] = [];
    for (const json of jsons) {
      const pause = this.#slices.pauseIfDue();
      if (pause) await pause;
      read.push(receiveOrRefuse(json, version, references));
    }
    return read;
  }

  /** Does checks 2 and 3, signatures and hash. Fetches the keys for all events together. */
  async check(received: readonly ReceivedEvent[]): Promise<(VerifiedEvent | Refusal)[]> {
    if (received.length === 0) return [];
    const now = this.#clock.now();
    const keyOf = await this.#keys.findAll(await wantedKeysOf(received, now, this.#slices));
    const verify =
      received.length > maxEventsOnThisThread
        ? await this.#verifyInBackground(received, keyOf, now)
        : undefined;
    const checked: (VerifiedEvent | Refusal)[] = [];
    for (const receivedEvent of received) {
      const pause = this.#slices.pauseIfDue();
      if (pause) await pause;
      const integrity = checkIntegrity(receivedEvent, keyOf, now, verify);
      if (integrity.outcome === 'reject')
        checked.push({
          error: integrity.reason,
          isTemporary: this.#recordMissingKeys(receivedEvent, keyOf, now),
        });
      else checked.push({ event: integrity.event, json: integrity.json });
    }
    return checked;
  }

  /**
   * Records failed look-ups of keys. For each server that must have signed the event, records all keys of its
   * signatures if none of these keys could be fetched.
   * @returns whether such a key may still become known
   */
  #recordMissingKeys({ event }: ReceivedEvent, keyOf: ServerKeyLookup, now: number): boolean {
    const validUntil = neededValidity(event, now);
    let isAwaited = false;
    for (const serverName of requiredSigners(event) ?? []) {
      const keyIds = keyIdsOf(event.pdu.signatures, serverName);
      const lacksAll = keyIds.every((keyId) => needsFetch(keyOf(serverName, keyId), validUntil));
      if (!lacksAll) continue;
      for (const keyId of keyIds) if (this.#missing.recordFailure(serverName, keyId)) isAwaited = true;
    }
    return isAwaited;
  }

  /** Verifies on other threads all signatures that `checkIntegrity` checks. @returns a function with the results */
  async #verifyInBackground(
    received: readonly ReceivedEvent[],
    keyOf: ServerKeyLookup,
    now: number,
  ): Promise<VerifySignature> {
    const signatures: (SignatureToVerify & { readonly signature64: string })[] = [];
    const collect: VerifySignature = (key, text, signature64) => {
      const signature = decodeBase64(signature64);
      if (signature) signatures.push({ key: key.publicKey, text, signature, signature64 });
      return signature !== undefined;
    };
    for (const receivedEvent of received) {
      const pause = this.#slices.pauseIfDue();
      if (pause) await pause;
      checkIntegrity(receivedEvent, keyOf, now, collect);
    }
    const areValid = await verifyInBackground(signatures);
    const verified = new Map<string, Pick<SignatureToVerify, 'key' | 'text'>>();
    for (const [index, signature] of signatures.entries())
      if (areValid[index]) verified.set(signature.signature64, signature);
    return (key, text, signature64) => {
      const valid = verified.get(signature64);
      return valid?.text === text && valid.key === key.publicKey;
    };
  }
}

/** Whether a result of the verifier is a refusal. */
export const isRefusal = (value: object): value is Refusal => 'error' in value;

/** Returns the keys to look up: each key once, with the latest time at which an event needs it to be valid. */
async function wantedKeysOf(
  received: readonly ReceivedEvent[],
  now: number,
  slices: TimeSlices,
): Promise<WantedEventKey[]> {
  const wantedByName = new Map<string, WantedEventKey>();
  await slices.each(received, ({ event }) => {
    const validUntil = neededValidity(event, now);
    for (const serverName of requiredSigners(event) ?? []) {
      for (const keyId of keyIdsOf(event.pdu.signatures, serverName)) {
        const name = `${serverName} ${keyId}`;
        if ((wantedByName.get(name)?.validUntil ?? -1) < validUntil)
          wantedByName.set(name, { serverName, keyId, validUntil });
      }
    }
  });
  return [...wantedByName.values()];
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
  const ofServer = signatures[serverName];
  if (!isJsonObject(ofServer)) return [];
  return Object.keys(ofServer)
    .filter((keyId) => keyId.startsWith('ed25519:') && keyId !== policyKeyId)
    .slice(0, maxSignatures);
}

/**
 * Reads an event like `receivePdu`, and returns its errors. Records no stack traces of the errors: a response may have a
 * million invalid events, and recording takes longer than the rest of their checks.
 */
function receiveOrRefuse(
  json: JsonValue,
  version: RoomVersion,
  references: ReferenceLimits | undefined,
): ReceivedEvent | Refusal {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return receivePdu(json, version, references);
  } catch (error) {
    if (!(error instanceof MatrixError)) throw error;
    return { error: error.message };
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}
