import type { SourceOperation } from './operations.ts';
import { isObject, type Located, type SpecSource } from './source.ts';

/** A response that is an example in the specification. */
export interface ResponseExample {
  readonly status: number;
  readonly body: unknown;
}

/** Returns the examples of an operation's responses. */
export function responseExamples(source: SpecSource, { definition }: SourceOperation): ResponseExample[] {
  return source.members(source.member(definition, 'responses')).flatMap(([status, response]) => {
    const json = source.member(source.member(response, 'content'), 'application/json');
    return source.members(source.member(json, 'examples')).map(([, { url, value: example }]) => ({
      status: Number(status.replace('XX', '00')),
      body: assemble(source, { url, value: isObject(example) ? example['value'] : undefined }),
    }));
  });
}

/**
 * Returns the value of an example with `$ref` resolved and `allOf` merged, as the pages of the specification show
 * it.
 */
function assemble(source: SpecSource, { url, value }: Located): unknown {
  if (Array.isArray(value)) return value.map((item) => assemble(source, { url, value: item }));
  if (!isObject(value)) return value;
  const { $ref: reference, allOf, ...otherMembers } = value;
  const merged: Record<string, unknown> = {};
  if (typeof reference === 'string') {
    const referred = assemble(source, source.at(new URL(reference, url)));
    if (!isObject(referred)) return referred;
    Object.assign(merged, referred);
  }
  if (Array.isArray(allOf)) {
    for (const part of allOf) Object.assign(merged, assemble(source, { url, value: part }));
  }
  for (const [name, member] of Object.entries(otherMembers)) {
    merged[name] = assemble(source, { url, value: member });
  }
  return merged;
}
