import type { JsonValue } from '../../protocol/index.ts';

/**
 * Turns the facts of a stream into JSON and back, so that another process of this server can follow the stream. Both
 * ends are trusted: a codec does not validate.
 */
export interface FactCodec<F> {
  /** Returns the fact as small JSON: ids, positions, names. */
  encode(fact: F): JsonValue;
  /** Rebuilds an equal fact; asynchronously where a part of it must be read from the database. */
  decode(json: JsonValue): F | Promise<F>;
}

/** The type, with `never` for each part that JSON cannot hold. */
type Jsonable<T> = T extends string | number | boolean | null
  ? T
  : T extends undefined | bigint | symbol | ((...args: never) => unknown)
    ? never
    : T extends ReadonlyMap<unknown, unknown> | ReadonlySet<unknown> | Uint8Array | Date
      ? never
      : { readonly [K in keyof T]: Jsonable<T[K]> };

/** The members of a fact whose value may be `undefined`, which JSON leaves out. */
type MaybeUndefined<F> = { [K in keyof F]-?: undefined extends F[K] ? K : never }[keyof F];

/** The fact, without `undefined` in the types of its members. */
type Defined<F> = F extends string ? F : { readonly [K in keyof F]: Exclude<F[K], undefined> };

/** The parameters of `jsonFacts`: none for facts without members that may be `undefined`. */
type Absent<F> = F extends string
  ? []
  : [MaybeUndefined<F>] extends [never]
    ? []
    : [absent: Readonly<Record<MaybeUndefined<F>, undefined>>];

/**
 * Makes the codec of facts that are JSON already; facts that JSON cannot hold are a type error.
 * @param members an object with all members that may be `undefined`: JSON leaves them out, and decoding sets them again
 */
export function jsonFacts<F extends string | object>(
  ...members: Defined<F> extends Jsonable<Defined<F>> ? Absent<F> : never
): FactCodec<F> {
  const [absent] = members as readonly object[];
  return {
    encode: (fact) => fact as JsonValue,
    decode: (json) => (absent ? { ...absent, ...(json as object) } : json) as F,
  };
}
