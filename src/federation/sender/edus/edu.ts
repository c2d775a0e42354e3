import type { JsonObject } from '../../../protocol/index.ts';

/** Something that is told to other servers and is no event of a room. Source: server-server API, "EDUs". */
export interface Edu {
  readonly type: string;
  readonly content: JsonObject;
}
