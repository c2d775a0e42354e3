/**
 * Types for the parts of nunjucks that the server uses. The compiler and the runtime are among them, because `jinja/`
 * changes both.
 */
declare module '@11ty/nunjucks' {
  export interface Environment {
    render(name: string, values: object): string;
    filters: Record<string, unknown>;
    tests: Record<string, unknown>;
    globals: Record<string, unknown>;
  }

  export interface TemplateSource {
    readonly src: string;
    /** Path of the template in error messages. */
    readonly path: string;
    readonly noCache: boolean;
  }

  /** A node of a parsed expression. */
  export interface Node {
    readonly typename: string;
  }

  export interface Compiler {
    _emit(code: string): void;
    compile(node: Node, frame: unknown): void;
    assertType(node: Node, ...types: unknown[]): void;
  }

  interface Context {
    readonly ctx: Record<string, unknown>;
    readonly env: Environment;
  }

  export interface Runtime {
    memberLookup(value: unknown, key: unknown, ...slice: unknown[]): unknown;
    contextOrFrameLookup(context: Context, frame: { lookup(name: string): unknown }, name: string): unknown;
    SafeString: new (text: string) => { readonly val: string };
  }

  interface Nunjucks {
    readonly Environment: new (
      loader: { getSource(name: string): TemplateSource | null },
      options: { autoescape: boolean },
    ) => Environment;
    readonly runtime: Runtime & Record<string, unknown>;
    readonly compiler: { readonly Compiler: { readonly prototype: Compiler & Record<string, unknown> } };
    readonly nodes: {
      readonly Node: {
        extend(
          name: string,
          members: { fields: string[] },
        ): new (
          line: number,
          column: number,
          ...fields: unknown[]
        ) => Node;
      };
    };
    /** @param isCompiledNow whether a faulty template throws here; by default its first rendering throws */
    compile(
      text: string,
      environment: Environment,
      path?: string,
      isCompiledNow?: boolean,
    ): { render(values: object): string };
    installJinjaCompat(): void;
  }

  const nunjucks: Nunjucks;
  export default nunjucks;
}
