import type { JsonObject } from '../../../protocol/index.ts';

/** A message to other servers that is not an event of a room. Source: server-server API, "EDUs". */
export interface Edu {
  readonly type: string;
  readonly content: JsonObject;
}
