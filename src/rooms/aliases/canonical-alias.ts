import { badJson, invalidParam, isRoomAlias, type JsonObject, type JsonValue } from '../../protocol/index.ts';

/** The aliases that the content of an `m.room.canonical_alias` event names, whatever else is in it. */
export function aliasesIn({ alias, alt_aliases: others }: JsonObject): string[] {
  return [alias, ...(Array.isArray(others) ? others : [])].filter(
    (one): one is string => typeof one === 'string' && one !== '',
  );
}

/**
 * The aliases that a new `m.room.canonical_alias` event would name.
 * @throws MatrixError M_BAD_JSON, or M_INVALID_PARAM for an alias that can be none
 */
export function checkedAliases(content: JsonObject): string[] {
  const { alias = null, alt_aliases: others = [] } = content;
  if (alias !== null && typeof alias !== 'string') throw badJson('alias must be a string');
  if (!Array.isArray(others)) throw badJson('alt_aliases must be a list');
  for (const other of others) if (typeof other !== 'string') throw badJson('alt_aliases must hold strings');
  const aliases = aliasesIn(content);
  for (const one of aliases) if (!isRoomAlias(one)) throw invalidParam(`${one} is not a room alias`);
  return aliases;
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
