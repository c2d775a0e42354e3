import fc from 'fast-check';
import { isJsonObject, type JsonObject } from '../../../src/protocol/index.ts';

/** Generates copies of an object. In each copy one value, at any depth, is replaced, removed or added. */
export function mutated(object: JsonObject): fc.Arbitrary<JsonObject> {
  const names = fc.constantFrom(...Object.keys(object), 'more');
  return fc.tuple(names, fc.option(fc.jsonValue()), fc.boolean()).chain(([name, value, deeper]) => {
    const field = object[name];
    if (deeper && isJsonObject(field) && Object.keys(field).length > 0) {
      return mutated(field).map((inner) => ({ ...object, [name]: inner }));
    }
    const { [name]: _removed, ...rest } = object;
    return fc.constant(value === null ? rest : { ...rest, [name]: value as JsonObject });
  });
}
