import type { JsonValue } from '../../protocol/index.ts';

/**
 * Turns the facts of a stream into JSON and back, so that another process of this server can follow the stream. A fact is
 * what a stream delivers after a commit. Both ends are trusted: a codec does not validate.
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

/** The rest parameter of `jsonFacts`: one object if members of the fact may be `undefined`, else nothing. */
type MembersParameter<F> = F extends string
  ? []
  : [MaybeUndefined<F>] extends [never]
    ? []
    : [members: Readonly<Record<MaybeUndefined<F>, undefined>>];

/**
 * Makes the codec of facts that are JSON already; facts that JSON cannot hold are a type error.
 * @param members one object that has each member that may be `undefined`, with the value `undefined`; nothing for facts
 * without such members. JSON leaves members with this value out, and decoding adds them to make an equal fact.
 */
export function jsonFacts<F extends string | object>(
  ...members: Defined<F> extends Jsonable<Defined<F>> ? MembersParameter<F> : never
): FactCodec<F> {
  const [undefinedMembers] = members as readonly object[];
  return {
    encode: (fact) => fact as JsonValue,
    decode: (json) => (undefinedMembers ? { ...undefinedMembers, ...(json as object) } : json) as F,
  };
}
