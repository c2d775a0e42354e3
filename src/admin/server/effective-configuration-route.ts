import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import type { JsonValue } from '../../protocol/index.ts';

/** An option with its value in force. */
export interface EffectiveOption {
  /** Names of the option and of the options that contain it, with dots between them. */
  readonly name: string;
  /** As a configuration file would contain it; secrets are masked. */
  readonly value: JsonValue;
  /**
   * Where the value comes from:
   * - `default`: no configuration file contains the option;
   * - `file`: a configuration file;
   * - `derived`: an environment variable, or another option.
   */
  readonly source: 'default' | 'file' | 'derived';
  /** Path of the configuration file; only for the source `file`. */
  readonly file?: string;
  /** Line of the option in this file. */
  readonly line?: number;
}

/** Serves all options with their values in force and the sources of these values. */
export function effectiveConfigurationRoute(read: () => readonly EffectiveOption[]): Route {
  return route(
    {
      operationId: 'getEffectiveConfiguration',
      method: 'GET',
      path: '/_server/admin/v1/effective_configuration',
      auth: 'admin',
      response: Type.Object({
        options: Type.Array(
          Type.Object({
            name: Type.String(),
            value: Type.Unknown(),
            source: Type.Union([Type.Literal('default'), Type.Literal('file'), Type.Literal('derived')]),
            file: Type.Optional(Type.String()),
            line: Type.Optional(Type.Integer()),
          }),
        ),
      }),
    },
    () => ({ options: read() }),
  );
}
