import type { IncomingMessage } from 'node:http';
import { canonicalJson, canonicalJsonPieces, type JsonValue, MatrixError } from '../../../protocol/index.ts';
import type { Clock } from '../../clock.ts';
import { JsonScan } from '../../json/index.ts';
import { KeyedMutex } from '../../keyed-mutex.ts';
import { TimeSlices } from '../../time-slices.ts';
import type { RequestSignature } from '../requester.ts';
import { BytesInMemory, type MemoryBounds } from './bytes-in-memory.ts';
import { clientJsonLimits, parseJson, parseServerBody } from './json-body.ts';
import {
  clientJsonBounds,
  maxShortBytes,
  parseLongJson,
  parseLongServerBody,
  serverJsonBounds,
} from './long-json.ts';
import { declaredLength, hasBody, readBody } from './read-body.ts';
import { UnverifiedBodies, type UnverifiedBody, type UnverifiedBounds } from './unverified-bodies.ts';

/**
 * Maximum milliseconds until a long body of another server has arrived: while it arrives, it takes a share of the
 * memory for unverified bodies.
 */
const longBodyTimeout = 60_000;

/**
 * Maximum bytes of long bodies of clients, JSON and forms, that are in memory until they are parsed. One user may send
 * two of the largest bodies at a time. Without these bounds, a client could send parts of any number of bodies, and
 * keep them in memory for minutes.
 */
export const defaultClientBounds: MemoryBounds = {
  ofSender: 32 * 1024 * 1024,
  total: 512 * 1024 * 1024,
};

/** A long body whose signature has been verified, and whose value is parsed later by `BodyReader.parse`. */
export interface UnparsedBody {
  readonly bytes: Buffer;
  readonly scan: JsonScan;
  /** Counts the bytes among those that wait to be verified and parsed, until `release` is called. */
  readonly byteCount: UnverifiedBody;
}

/** A request of a client whose body has not been read yet. */
export interface ClientRequest {
  readonly raw: IncomingMessage;
  /** The user who makes the request; the IP address of the client where the user is not known before the body. */
  readonly sender: string;
  /** Maximum bytes of the body. */
  readonly limit: number;
}

/** A request of another server whose body has not been read yet. */
export interface SignedRequest {
  readonly raw: IncomingMessage;
  /** IP address that the request comes from. */
  readonly ip: string;
  /** Maximum bytes of the body. */
  readonly limit: number;
  readonly signature: RequestSignature;
}

/** A body whose signature has been verified: its value, or a long body that is yet to be parsed. */
export interface SignedBody {
  readonly value?: unknown;
  readonly unparsed?: UnparsedBody;
}

/**
 * Reads JSON bodies. A short one is parsed at once. A long one is measured while it arrives, and parsed in slices, so
 * that no body keeps other requests waiting.
 */
export class BodyReader {
  readonly #clock: Clock;
  readonly #unverified: UnverifiedBodies;
  readonly #ofClients: BytesInMemory;
  /** Long bodies that must be parsed before they can be verified are parsed one at a time. */
  readonly #parsing = new KeyedMutex();

  constructor(
    clock: Clock,
    bounds: {
      readonly unverified?: UnverifiedBounds | undefined;
      readonly ofClients?: MemoryBounds | undefined;
    } = {},
  ) {
    this.#clock = clock;
    this.#unverified = new UnverifiedBodies(clock, bounds.unverified);
    this.#ofClients = new BytesInMemory(bounds.ofClients ?? defaultClientBounds);
  }

  /**
   * Reads the JSON body of a client.
   * @throws MatrixError M_LIMIT_EXCEEDED, M_TOO_LARGE, M_NOT_JSON, M_BAD_JSON
   */
  async read({ raw, sender, limit }: ClientRequest): Promise<unknown> {
    if (isShort(raw)) return parseJson(await readBody(raw, limit), clientJsonLimits);
    const scan = new JsonScan(clientJsonBounds);
    const body = this.#ofClients.open(sender);
    try {
      const bytes = await readBody(raw, limit, (chunk) => {
        body.add(chunk.length);
        scan.add(chunk);
      });
      return await parseLongJson(bytes, scan, new TimeSlices(this.#clock));
    } finally {
      body.release();
    }
  }

  /**
   * Reads a form.
   * @returns its bytes
   * @throws MatrixError M_LIMIT_EXCEEDED, M_TOO_LARGE
   */
  async readForm({ raw, sender, limit }: ClientRequest): Promise<Buffer> {
    if (isShort(raw)) return readBody(raw, limit);
    const body = this.#ofClients.open(sender);
    try {
      return await readBody(raw, limit, (chunk) => body.add(chunk.length));
    } finally {
      body.release();
    }
  }

  /**
   * Reads the body of another server and verifies its signature.
   * @returns the body, or a long body that is yet to be parsed
   * @throws MatrixError 401 M_UNAUTHORIZED, M_LIMIT_EXCEEDED, M_TOO_LARGE, M_NOT_JSON, M_BAD_JSON
   */
  async readSigned({ raw, ip, limit, signature }: SignedRequest): Promise<SignedBody> {
    if (!hasBody(raw)) {
      await signature.verify(undefined);
      return {};
    }
    if (!isShort(raw)) return { unparsed: await this.#readLong({ raw, ip, limit, signature }) };
    const { value, text } = parseServerBody(await readBody(raw, limit));
    await signature.verify(text ?? canonicalJson(value as JsonValue, 'as written'));
    return { value };
  }

  /**
   * Parses a verified body, and then stops counting its bytes among those that wait to be verified and parsed.
   * @throws MatrixError M_NOT_JSON, M_BAD_JSON
   */
  async parse({ bytes, scan, byteCount }: UnparsedBody): Promise<unknown> {
    const { value } = await parseLongServerBody(bytes, scan, new TimeSlices(this.#clock));
    byteCount.release();
    return value;
  }

  async #readLong({ raw, ip, limit, signature }: SignedRequest): Promise<UnparsedBody> {
    const byteCount = this.#unverified.open(ip);
    const scan = new JsonScan(serverJsonBounds);
    const timer = this.#clock.setTimer(longBodyTimeout, () =>
      raw.destroy(new Error('The body arrived too slowly')),
    );
    try {
      const bytes = await readBody(raw, limit, (chunk) => {
        byteCount.add(chunk.length);
        scan.add(chunk);
      });
      timer.cancel();
      // Most servers send canonical JSON: then the signature covers the received bytes.
      if (!(await signature.covers(bytes))) await this.#verifyParsed(bytes, scan, signature);
      return { bytes, scan, byteCount };
    } catch (error) {
      timer.cancel();
      if (error instanceof MatrixError && error.status === 401) byteCount.failed();
      byteCount.release();
      throw error;
    }
  }

  /**
   * Verifies a body that is not sent as canonical JSON.
   * @throws MatrixError 401 M_UNAUTHORIZED, M_LIMIT_EXCEEDED, M_NOT_JSON, M_BAD_JSON
   */
  async #verifyParsed(bytes: Buffer, scan: JsonScan, signature: RequestSignature): Promise<void> {
    this.#unverified.checkFailuresOfAll();
    const slices = new TimeSlices(this.#clock);
    const canonical = await this.#parsing.run('', async () => {
      const { value, isWhole } = await parseLongServerBody(bytes, scan, slices);
      // Parsing replaces unusable items by null; no signature of the server covers the result.
      return isWhole ? canonicalBytes(value as JsonValue, slices) : undefined;
    });
    if (canonical === undefined || !(await signature.covers(canonical))) {
      throw new MatrixError(401, 'M_UNAUTHORIZED', 'The signature is invalid');
    }
  }
}

/** Writes canonical JSON in slices. */
async function canonicalBytes(value: JsonValue, slices: TimeSlices): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for (const text of canonicalJsonPieces(value, 'as written')) {
    pieces.push(Buffer.from(text));
    const pause = slices.pauseIfDue();
    if (pause) await pause;
  }
  return Buffer.concat(pieces);
}

/** Whether `Content-Length` says that a body is so short that it need not be measured. */
function isShort(request: IncomingMessage): boolean {
  return request.headers['content-length'] !== undefined && declaredLength(request) <= maxShortBytes;
}
