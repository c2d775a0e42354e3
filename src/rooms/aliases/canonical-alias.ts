import type { JsonObject, JsonValue } from '../../protocol/index.ts';

/** The aliases that the content of an `m.room.canonical_alias` event names, whatever else is in it. */
export function aliasesIn({ alias, alt_aliases: others }: JsonObject): string[] {
  return [alias, ...(Array.isArray(others) ? others : [])].filter(
    (one): one is string => typeof one === 'string' && one !== '',
  );
}

/** The content of an `m.room.canonical_alias` event without an alias; `undefined` when it does not name it. */
export function withoutAlias(content: JsonObject, removed: string): JsonObject | undefined {
  if (!aliasesIn(content).includes(removed)) return undefined;
  const { alias, alt_aliases: others, ...rest } = content;
  const left: JsonValue[] = Array.isArray(others) ? others.filter((other) => other !== removed) : [];
  return {
    ...rest,
    ...(typeof alias === 'string' && alias !== removed && { alias }),
    ...(left.length > 0 && { alt_aliases: left }),
  };
}
