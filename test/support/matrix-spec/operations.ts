import { globSync, readFileSync } from 'node:fs';
import { childOf, type Place, SPECIFICATION } from './documents.ts';

/** One operation of the specification's APIs. */
export interface Operation {
  readonly operationId: string;
  /** Upper case. */
  readonly method: string;
  /** The template with its base, for instance `/_matrix/client/v3/rooms/{roomId}/send/{eventType}/{txnId}`. */
  readonly path: string;
  /** `client-server`, `server-server`, `application-service`, `push-gateway` or `identity`. */
  readonly api: string;
  /** Where it is defined. */
  readonly place: Place;
}

const PATH = /^ {2}["']?(\/[^"']*?)["']?:\s*$/;
const METHOD = /^ {4}(get|put|post|delete|head|options|patch):\s*$/;
const OPERATION_ID = /^ {6}operationId: (\S+)\s*$/;
const BASE_PATH = /^ {6}basePath:\s*\n {8}default: (\S+)\s*$/m;

/**
 * Lists the operations of all files. It reads lines instead of parsing, which takes a hundredth of the time; that
 * nothing is missed is for the test to show.
 */
export function listOperations(): Operation[] {
  const root = new URL('api/', SPECIFICATION);
  const files = globSync('*/*.yaml', { cwd: root }).sort();
  return files.flatMap((file) => operationsOf(file.split('/', 1)[0]!, new URL(file, root)));
}

function operationsOf(api: string, file: URL): Operation[] {
  const text = readFileSync(file, 'utf8');
  const base = BASE_PATH.exec(text)?.[1] ?? '';
  const operations: Operation[] = [];
  let path = '';
  let method = '';
  for (const line of text.split('\n')) {
    path = PATH.exec(line)?.[1] ?? path;
    method = METHOD.exec(line)?.[1] ?? method;
    const operationId = OPERATION_ID.exec(line)?.[1];
    if (operationId === undefined) continue;
    const place = childOf(file, 'paths', path, method);
    operations.push({ operationId, method: method.toUpperCase(), path: base + path, api, place });
  }
  return operations;
}
