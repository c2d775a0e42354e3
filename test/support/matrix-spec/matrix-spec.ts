import { childOf, Documents, isObject, type Place, SPECIFICATION } from './documents.ts';
import { listOperations, type Operation } from './operations.ts';
import { PathTree } from './path-tree.ts';

export type { Operation } from './operations.ts';

/** What the specification says about one response. */
export interface Verdict {
  /** Undefined when no operation of the specification has this method and path. */
  readonly operationId: string | undefined;
  /** What is wrong, a line each; empty when the response is as specified. */
  readonly problems: readonly string[];
}

/** The files of the specification. */
export const documents = new Documents();
const STANDARD_ERROR = new URL('api/client-server/definitions/errors/error.yaml', SPECIFICATION);
const AUTH_CHALLENGE = new URL('api/client-server/definitions/auth_response.yaml', SPECIFICATION);

let index: { readonly all: readonly Operation[]; readonly tree: PathTree<Operation> } | undefined;

function loadIndex() {
  if (index !== undefined) return index;
  const all = listOperations();
  const tree = new PathTree<Operation>();
  for (const operation of all) tree.add(operation.path, operation.method, operation);
  index = { all, tree };
  return index;
}

/** All operations of the specification. */
export const operations = (): readonly Operation[] => loadIndex().all;

/**
 * The operation that serves a request.
 *
 * @param path of the request as it was sent, in either spelling, with or without a query
 */
export function findOperation(method: string, path: string): Operation | undefined {
  const [withoutQuery = ''] = path.split('?', 1);
  const canonical = withoutQuery
    .replace(/^\/_proto(?=\/|$)/, '/_matrix')
    .replace(/^\/\.well-known\/proto(?=\/|$)/, '/.well-known/matrix');
  return loadIndex().tree.find(canonical, method.toUpperCase());
}

/**
 * Validates a response against the schema that the specification gives for it.
 *
 * A status that is not documented must be an error, and any error may have the standard form instead of what is
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
  const documented = documentation(operation, status);
  return { operationId: operation.operationId, problems: problemsOf(documented, status, body) };
}

/** A documented response; its schema is absent when it is not JSON, or JSON is only one of several media types. */
interface Documentation {
  readonly schema: Place | undefined;
}

const documentations = new Map<Operation, Map<number, Documentation | undefined>>();

/** How the response for a status is documented: looked up once, since tests see most responses very often. */
function documentation(operation: Operation, status: number): Documentation | undefined {
  const ofOperation = documentations.get(operation) ?? new Map<number, Documentation | undefined>();
  documentations.set(operation, ofOperation);
  if (ofOperation.has(status)) return ofOperation.get(status);
  const response = documentedResponse(operation, status);
  const found = response && { schema: jsonSchemaOf(response) };
  ofOperation.set(status, found);
  return found;
}

function problemsOf(documented: Documentation | undefined, status: number, body: unknown): string[] {
  if (documented === undefined) {
    // Not every operation that asks for user-interactive authentication documents how it does.
    if (status === 401 && schemaProblems(AUTH_CHALLENGE, body).length === 0) return [];
    return status >= 400 ? standardErrorProblems(body) : [`status ${status} is not documented`];
  }
  const { schema } = documented;
  const problems = schema === undefined ? [] : schemaProblems(schema, body);
  if (problems.length === 0 || status < 400) return problems;
  return standardErrorProblems(body).length === 0 ? [] : problems;
}

/** Where the response for a status is described, be it as `404` or as `4XX`. */
function documentedResponse(operation: Operation, status: number): Place | undefined {
  const candidates = [String(status), `${Math.floor(status / 100)}XX`, 'default'];
  return candidates
    .map((key) => documents.resolve(childOf(operation.place, 'responses', key)))
    .find(({ value }) => value !== undefined)?.place;
}

function jsonSchemaOf(response: Place): Place | undefined {
  const { place, value } = documents.resolve(childOf(response, 'content'));
  if (!isObject(value) || Object.keys(value).join() !== 'application/json') return undefined;
  const schema = documents.resolve(childOf(place, 'application/json', 'schema'));
  return schema.value === undefined ? undefined : schema.place;
}

const standardErrorProblems = (body: unknown): string[] => schemaProblems(STANDARD_ERROR, body);

function schemaProblems(schema: Place, body: unknown): string[] {
  if (body === undefined) return ['there is no JSON body'];
  const validate = documents.validator(schema);
  if (validate(body)) return [];
  return (validate.errors ?? []).map(({ instancePath, message = '', params }) => {
    return `${instancePath || '/'} ${message} ${JSON.stringify(params)}`;
  });
}
