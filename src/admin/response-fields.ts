import { type TSchema, Type } from 'typebox';
import type { JsonObject } from '../protocol/index.ts';

/*
 * Schemas of response fields, for the contracts of the admin API. docs/generated/admin-api.json is made from these
 * contracts, and the tests check each response against it: responses have only the fields that these schemas name.
 */

export const text = Type.String();
export const integer = Type.Integer();
export const flag = Type.Boolean();

/** A response without any field. */
export const nothing = Type.Object({}, { additionalProperties: false });

/** An object whose fields are not described here: an event, or data of clients. */
export const anyObject = Type.Unsafe<JsonObject>(Type.Object({}, { additionalProperties: true }));

export const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

export const nullableText = nullable(text);
export const nullableInteger = nullable(integer);
