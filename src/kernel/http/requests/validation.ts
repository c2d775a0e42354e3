import type { TSchema } from 'typebox';
import { Compile, type Validator } from 'typebox/compile';
import { Settings } from 'typebox/system';
import { badJson, invalidParam, missingParam, notJson } from '../../../protocol/index.ts';
import type { ParsedQuery } from '../routing/route-table.ts';
import { withoutNullMembers } from './null-members.ts';
import { withBounds } from './schema-bounds.ts';
import { type FindExcess, sizeCheck } from './size-checks.ts';
import { violatingPart } from './violating-part.ts';

/**
 * Adds bounds to a schema, and checks values against it. The schema is compiled when the first value is checked, so
 * that the server starts fast and unused routes need little memory.
 */
class Checker {
  readonly #schema: TSchema;
  #compiled: { readonly validator: Validator; readonly findExcess: FindExcess | undefined } | undefined;

  constructor(schema: TSchema) {
    this.#schema = schema;
  }

  accepts(value: unknown): boolean {
    return this.#compile().validator.Check(value);
  }

  /** Describes the first string, list or map that is too large. Must be called before `accepts`. */
  excess(value: unknown): Violation | undefined {
    const excess = this.#compile().findExcess?.(value);
    return excess && { missing: false, text: `${subjectOf(excess.path.join('.'))} ${excess.text}` };
  }

  #compile() {
    if (this.#compiled === undefined) {
      const schema = withBounds(this.#schema);
      this.#compiled = { validator: Compile(schema), findExcess: sizeCheck(schema) };
    }
    return this.#compiled;
  }

  /** Describes the first violation of the schema by a rejected value. */
  violation(value: unknown): Violation {
    const whole = { schema: withBounds(this.#schema), value, path: [] };
    const { schema, value: part, path: pathOfPart } = isLarge(value) ? violatingPart(whole) : whole;
    const errors = Compile(schema).Errors(part);
    const [error] = errors;
    const path = [...pathOfPart, ...(error?.instancePath.split('/').slice(1) ?? [])].join('.');
    if (error?.keyword === 'required') {
      const missing = (error.params as { requiredProperties: string[] }).requiredProperties[0];
      return { missing: true, text: `'${path ? `${path}.` : ''}${missing}' is missing` };
    }
    const constants = errors
      .filter(({ keyword, instancePath }) => keyword === 'const' && instancePath === error?.instancePath)
      .map(({ params }) => (params as { allowedValue: unknown }).allowedValue);
    const isCut = errors.length >= Settings.Get().maxErrors;
    const allowed = (isCut ? allConstants(schema, constants) : constants).map((constant) =>
      JSON.stringify(constant),
    );
    const expectation = allowed.length > 0 ? `must be ${allowed.join(' or ')}` : error?.message;
    return { missing: false, text: `${subjectOf(path)} ${expectation ?? 'is not valid'}` };
  }
}

/** Maximum characters of a path in an error; names of members in a request may be long. */
const maxPathLength = 300;

/** Names the part of a request at a path, for error messages. */
const subjectOf = (path: string): string => (path ? `'${path.slice(0, maxPathLength)}'` : 'it');

/**
 * Minimum number of entries, at all levels together, of a large value. A large value is narrowed to the faulty part
 * before its errors are collected.
 */
const manyEntries = 200;

/** Whether an object or list has many entries, including the entries of the objects and lists inside it. */
function isLarge(value: unknown): boolean {
  const waiting = [value];
  let count = 0;
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (typeof next !== 'object' || next === null) continue;
    const entries = Object.values(next);
    count += entries.length;
    if (count >= manyEntries) return true;
    for (const entry of entries) if (typeof entry === 'object') waiting.push(entry);
  }
  return false;
}

/**
 * Returns all constants of the enumeration that begins with the constants in `reported`; `reported` itself if the
 * schema has no such enumeration. A validator reports a limited number of errors, and therefore only the first
 * constants of a long enumeration.
 */
function allConstants(schema: unknown, reported: readonly unknown[]): readonly unknown[] {
  if (reported.length === 0 || typeof schema !== 'object' || schema === null) return reported;
  const { anyOf } = schema as JsonSchema;
  const constants = (Array.isArray(anyOf) ? (anyOf as readonly JsonSchema[]) : [])
    .filter((option) => option.const !== undefined)
    .map((option) => option.const);
  if (reported.every((constant, index) => constants[index] === constant)) return constants;
  for (const part of Object.values(schema)) {
    const found = allConstants(part, reported);
    if (found !== reported) return found;
  }
  return reported;
}

interface Violation {
  readonly missing: boolean;
  readonly text: string;
}

export interface BodyOptions {
  /** Whether an absent body is rejected instead of read as `{}`. */
  readonly isNeeded?: boolean | undefined;
  /** Whether optional members that are null are read as if they were left out. */
  readonly nullIsAbsent?: boolean;
}

/** Checks JSON bodies against a schema. */
export class BodyChecker {
  readonly #checker: Checker;
  readonly #schema: TSchema;
  readonly #options: BodyOptions;

  constructor(schema: TSchema, options: BodyOptions = {}) {
    this.#checker = new Checker(schema);
    this.#schema = schema;
    this.#options = options;
  }

  /**
   * @param body `undefined` if none was sent; counts as `{}` where the schema accepts that
   * @returns the body. With `nullIsAbsent`, optional members that are null are left out where the schema does not accept null
   * @throws MatrixError M_BAD_JSON, or M_NOT_JSON for an absent body
   */
  check(body: unknown): unknown {
    if (this.#options.isNeeded && body === undefined) throw notJson('The body is empty');
    const value = body === undefined ? {} : body;
    const excess = this.#checker.excess(value);
    if (excess) throw unexpectedBody(excess);
    if (this.#checker.accepts(value)) return value;
    if (body === undefined) throw notJson('The body is empty');
    const cleaned = this.#options.nullIsAbsent ? withoutNullMembers(this.#schema, value) : value;
    if (this.#checker.accepts(cleaned)) return cleaned;
    throw unexpectedBody(this.#checker.violation(cleaned));
  }
}

const unexpectedBody = ({ text }: Violation) => badJson(`The body is not as expected: ${text}`);

type Conversion = (text: string) => unknown;

const conversions: Readonly<Record<string, Conversion>> = {
  integer: (text) => (/^-?\d{1,16}$/.test(text) ? Number(text) : text),
  number: (text) => (/^-?\d{1,16}(\.\d{1,16})?$/.test(text) ? Number(text) : text),
  boolean: (text) => (text === 'true' ? true : text === 'false' ? false : text),
};

interface Parameter {
  readonly isArray: boolean;
  readonly convert: Conversion | undefined;
}

/**
 * Checks query parameters or form fields against a schema. Converts integers, numbers and booleans, and fills in each
 * `default` of the schema. A parameter that is an array has all values that were sent; any other parameter has the
 * first one.
 */
export class ParameterChecker {
  readonly #checker: Checker;
  readonly #parameters: ReadonlyMap<string, Parameter>;
  readonly #defaults: readonly (readonly [name: string, value: unknown])[];
  readonly #kind: string;

  /** @param kind names the parameters in error messages */
  constructor(schema: TSchema, kind: 'Query parameter' | 'Form field') {
    this.#checker = new Checker(schema);
    this.#kind = kind;
    const { properties = {} } = schema as { properties?: Record<string, JsonSchema> };
    this.#parameters = new Map(
      Object.entries(properties).map(([name, property]) => [name, parameterOf(property)]),
    );
    this.#defaults = Object.entries(properties)
      .filter((entry) => entry[1].default !== undefined)
      .map(([name, property]) => [name, property.default]);
  }

  /** @throws MatrixError M_MISSING_PARAM, M_INVALID_PARAM */
  check(sent: ParsedQuery): unknown {
    const value: Record<string, unknown> = { ...sent };
    for (const name in value) {
      const parameter = this.#parameters.get(name);
      const text = value[name];
      if (parameter === undefined || text === undefined) continue;
      const converted = read(parameter, text as string | string[]);
      if (converted !== text) value[name] = converted;
    }
    for (const [name, fallback] of this.#defaults) if (value[name] === undefined) value[name] = fallback;
    const excess = this.#checker.excess(value);
    if (excess === undefined && this.#checker.accepts(value)) return value;
    const { missing, text } = excess ?? this.#checker.violation(value);
    throw (missing ? missingParam : invalidParam)(`${this.#kind} ${text}`);
  }
}

interface JsonSchema {
  readonly type?: string;
  readonly const?: unknown;
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly default?: unknown;
}

function parameterOf(schema: JsonSchema): Parameter {
  const isArray = schema.type === 'array';
  const item = isArray ? schema.items : schema;
  const type = item?.type ?? item?.anyOf?.find((option) => option.type !== 'string')?.type;
  return { isArray, convert: type === undefined ? undefined : conversions[type] };
}

function read({ isArray, convert }: Parameter, sent: string | string[]): unknown {
  if (isArray) {
    const all = Array.isArray(sent) ? sent : [sent];
    return convert === undefined ? all : all.map(convert);
  }
  const first = Array.isArray(sent) ? sent[0]! : sent;
  return convert === undefined ? first : convert(first);
}
