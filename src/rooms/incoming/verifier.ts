import type { Clock } from '../../kernel/clock.ts';
import { TimeSlices } from '../../kernel/time-slices.ts';
import {
  checkIntegrity,
  isJsonObject,
  type JsonValue,
  MatrixError,
  type ReceivedEvent,
  type ReferenceLimits,
  type RoomVersion,
  receivePdu,
  requiredSigners,
} from '../../protocol/index.ts';
import type { VerifiedEvent } from '../placement/verified-event.ts';
import type { EventKeys, EventKeyWant } from './remote-servers.ts';

/** Why an event may not be used. */
export interface Refusal {
  readonly error: string;
}

/** Signatures of one server on one event whose keys are looked up. */
const mostSignatures = 20;

/**
 * Checks events from other servers: format, size, signatures, hash. Checking a signature takes about a tenth of a
 * millisecond, so that of many events it is done in slices (decision 0085).
 * Source: server-server API, "Checks performed on receipt of a PDU", checks 1 to 3.
 */
export class Verifier {
  readonly #keys: EventKeys;
  readonly #clock: Clock;

  constructor({ keys, clock }: { readonly keys: EventKeys; readonly clock: Clock }) {
    this.#keys = keys;
    this.#clock = clock;
  }

  /** Reads and checks. Results are in the order of `jsons`. */
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

  /** Check 1. The events say who they are, and nothing vouches for them yet. */
  async read(
    version: RoomVersion,
    jsons: readonly JsonValue[],
    references?: ReferenceLimits,
  ): Promise<(ReceivedEvent | Refusal)[]> {
    const slices = new TimeSlices(this.#clock);
    const read: (ReceivedEvent | Refusal)[] = [];
    for (const json of jsons) {
      await slices.rest();
      try {
        read.push(receivePdu(json, version, references));
      } catch (error) {
        if (!(error instanceof MatrixError)) throw error;
        read.push({ error: error.message });
      }
    }
    return read;
  }

  /** Checks 2 and 3, with the keys of all fetched together. */
  async check(received: readonly ReceivedEvent[]): Promise<(VerifiedEvent | Refusal)[]> {
    if (received.length === 0) return [];
    const now = this.#clock.now();
    const keyOf = await this.#keys.findAll(wantsOf(received, now));
    const slices = new TimeSlices(this.#clock);
    const checked: (VerifiedEvent | Refusal)[] = [];
    for (const one of received) {
      await slices.rest();
      const integrity = checkIntegrity(one, keyOf, now);
      if (integrity.outcome === 'reject') checked.push({ error: integrity.reason });
      else checked.push({ event: integrity.event, json: integrity.json });
    }
    return checked;
  }
}

export const isRefusal = (value: object): value is Refusal => 'error' in value;

/** Every key once, for as long as the latest event wants it. */
function wantsOf(received: readonly ReceivedEvent[], now: number): EventKeyWant[] {
  const wants = new Map<string, EventKeyWant>();
  for (const { event } of received) {
    const validUntil = event.version.enforceKeyValidity
      ? Math.max(0, Math.min(event.originServerTs, now))
      : 0;
    for (const serverName of requiredSigners(event) ?? []) {
      for (const keyId of keyIdsOf(event.pdu.signatures, serverName)) {
        const name = `${serverName} ${keyId}`;
        if ((wants.get(name)?.validUntil ?? -1) < validUntil)
          wants.set(name, { serverName, keyId, validUntil });
      }
    }
  }
  return [...wants.values()];
}

function keyIdsOf(signatures: JsonValue | undefined, serverName: string): readonly string[] {
  if (!isJsonObject(signatures) || !Object.hasOwn(signatures, serverName)) return [];
  const own = signatures[serverName];
  if (!isJsonObject(own)) return [];
  return Object.keys(own)
    .filter((keyId) => keyId.startsWith('ed25519:'))
    .slice(0, mostSignatures);
}
