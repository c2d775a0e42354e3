import { adminOperations } from './admin-operations.ts';
import type { Content, Schema } from './facts.ts';
import { withoutKnownDifferences } from './known-differences.ts';
import { listOperations, type Operation } from './operations.ts';
import { PathTree } from './path-tree.ts';
import { namedSchema, schemaProblems } from './validators.ts';

export type { Operation } from './operations.ts';

/** The result of the validation of one response. */
export interface Verdict {
  /** Undefined when no operation of the specification has this method and path. */
  readonly operationId: string | undefined;
  /** The problems of the response, a line each; empty when it is as specified. */
  readonly problems: readonly string[];
}

let index: { readonly specified: readonly Operation[]; readonly tree: PathTree<Operation> } | undefined;

function loadIndex() {
  if (index !== undefined) return index;
  const specified = listOperations();
  const tree = new PathTree<Operation>();
  for (const operation of specified) tree.add(operation.path, operation.method, operation);
  for (const operation of adminOperations()) tree.add(operation.path, operation.method, operation);
  index = { specified, tree };
  return index;
}

/** All operations of the specification. */
export const operations = (): readonly Operation[] => loadIndex().specified;

/**
 * The operation that serves a request.
 *
 * @param path of the request as it was sent, with `/_matrix` or `/_proto`, with or without a query
 */
export function findOperation(method: string, path: string): Operation | undefined {
  const [withoutQuery = ''] = path.split('?', 1);
  const canonical = withoutQuery
    .replace(/^\/_proto(?=\/|$)/, '/_matrix')
    .replace(/^\/_server(?=\/|$)/, '/_synapse')
    .replace(/^\/\.well-known\/proto(?=\/|$)/, '/.well-known/matrix');
  return loadIndex().tree.find(canonical, method.toUpperCase());
}

/**
 * Validates a response against the schema that the specification defines for it; a response of the admin API against the
 * description that is made from its routes.
 *
 * A status that is not documented must be an error, and any error may have the standard form instead of the one
 * documented for its status, because every endpoint can fail in ways that are described once for all of them.
 *
 * @param path of the request, as for `findOperation`
 * @param body the parsed JSON; undefined when the response has none or is not JSON
 */
export function validateResponse(method: string, path: string, status: number, body: unknown): Verdict {
  const operation = findOperation(method, path);
  if (operation === undefined) {
    return {
      operationId: undefined,
      problems: status >= 400 && body !== undefined ? standardErrorProblems(body) : [],
    };
  }
  const documented = documentedContent(operation, status);
  const { operationId } = operation;
  const compared = status < 400 ? withoutKnownDifferences(operationId, body) : body;
  return { operationId, problems: problemsOf(documented, status, compared) };
}

function problemsOf(documented: Content | undefined, status: number, body: unknown): string[] {
  if (documented === undefined) {
    // Some operations that require user-interactive authentication have no documentation of status 401.
    const isChallenge =
      status === 401 && bodyProblems(namedSchema('client-server.auth_response'), body).length === 0;
    if (isChallenge) return [];
    return status >= 400 ? standardErrorProblems(body) : [`status ${status} is not documented`];
  }
  const schema = jsonSchemaOf(documented);
  const problems = schema === undefined ? [] : bodyProblems(schema, body);
  if (problems.length === 0 || status < 400) return problems;
  return standardErrorProblems(body).length === 0 ? [] : problems;
}

/** The response that is documented for a status, as `404`, as `4XX` or as `default`. */
function documentedContent({ responses }: Operation, status: number): Content | undefined {
  return responses[status] ?? responses[`${Math.floor(status / 100)}XX`] ?? responses['default'];
}

/** The schema of a response that is always JSON; undefined when the response has or may have another media type. */
function jsonSchemaOf(content: Content): Schema | undefined {
  return Object.keys(content).join() === 'application/json' ? content['application/json'] : undefined;
}

const standardErrorProblems = (body: unknown): string[] =>
  bodyProblems(namedSchema('client-server.error'), body);

function bodyProblems(schema: Schema, body: unknown): string[] {
  return body === undefined ? ['there is no JSON body'] : schemaProblems(schema, body);
}
