import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import ajvFormats from 'ajv-formats';
import { readSchemas, type Schema } from './facts.ts';

const validators = new Map<Schema, ValidateFunction>();
let shared: { readonly ajv: Ajv2020; readonly schemas: Readonly<Record<string, Schema>> } | undefined;

/** Reads the schemas that others refer to when the first validator is needed. */
function load() {
  if (shared !== undefined) return shared;
  // matrix-spec.test.ts checks the schemas themselves; each process would spend 0.2 s on that.
  const ajv = new Ajv2020({ strict: false, allErrors: true, logger: false, validateSchema: false });
  ajvFormats.default(ajv);
  const schemas = readSchemas();
  for (const [name, schema] of Object.entries(schemas)) ajv.addSchema(schema, name);
  shared = { ajv, schemas };
  return shared;
}

/** The schema that references call `name`. */
export function namedSchema(name: string): Schema {
  const schema = load().schemas[name];
  if (schema === undefined) throw new Error(`There is no schema named ${name}`);
  return schema;
}

/** Returns the problems of a value, a line each; none when it fits the schema. */
export function schemaProblems(schema: Schema, value: unknown): string[] {
  const validate = validatorOf(schema);
  if (validate(value)) return [];
  return (validate.errors ?? []).map(({ instancePath, message = '', params }) => {
    return `${instancePath || '/'} ${message} ${JSON.stringify(params)}`;
  });
}

/** Returns the validator of a schema, compiled once. A schema that only refers to a named schema has the latter's. */
function validatorOf(schema: Schema): ValidateFunction {
  const compiled = validators.get(schema);
  if (compiled !== undefined) return compiled;
  const { $ref: name, ...rest } = schema;
  const isReference = typeof name === 'string' && Object.keys(rest).length === 0;
  const validator = isReference ? validatorOf(namedSchema(name)) : load().ajv.compile(schema);
  validators.set(schema, validator);
  return validator;
}
