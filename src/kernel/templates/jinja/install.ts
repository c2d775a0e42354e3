import type { Compiler, Node, Runtime } from '@11ty/nunjucks';
import nunjucks from '@11ty/nunjucks';
import { isTrue, itemsOf, memberOf, sliceOf } from './members.ts';
import { pythonFormat } from './python-format.ts';

type CompileMethod = (this: Compiler, node: never, frame: unknown, ...rest: unknown[]) => void;

interface Binary {
  readonly left: Node;
  readonly right: Node;
}

/**
 * Makes nunjucks behave as Jinja2 where templates of the reference server rely on it: slices, `True` and `None`, loops
 * over objects, empty lists and objects as false conditions, `text % values`, methods of Python. Changes the module for
 * the whole process, so it is called once.
 */
export function installJinja(): void {
  nunjucks.installJinjaCompat();
  restrictLookups(nunjucks.runtime);
  Object.assign(nunjucks.runtime, {
    isTrue,
    fromIterator: itemsOf,
    modulo: (left: unknown, right: number) =>
      typeof left === 'string' || left instanceof String
        ? pythonFormat(String(left), right)
        : (left as number) % right,
    and: (left: unknown, right: () => unknown) => (isTrue(left) ? right() : left),
    or: (left: unknown, right: () => unknown) => (isTrue(left) ? left : right()),
  });
  compileLikePython(nunjucks.compiler.Compiler.prototype);
}

/**
 * Lets names refer only to values of the caller, to globals and to constants, and lets templates read only the members
 * that `memberOf` returns.
 */
function restrictLookups(runtime: Runtime): void {
  const constants: Readonly<Record<string, unknown>> = { True: true, False: false, None: null };
  runtime.memberLookup = (value, key, ...slice) =>
    slice.length === 2 ? sliceOf(value, key, ...(slice as [unknown, unknown])) : memberOf(value, key);
  runtime.contextOrFrameLookup = ({ ctx, env }, frame, name) => {
    const local = frame.lookup(name);
    if (local !== undefined) return local;
    for (const scope of [ctx, env.globals, constants]) if (Object.hasOwn(scope, name)) return scope[name];
    return undefined;
  };
}

/**
 * Replaces methods of the compiler, so that compiled templates test truth and compute `text % values` as Python does.
 */
function compileLikePython(compiler: Compiler & Record<string, unknown>): void {
  /** An expression that is only tested for its truth. */
  const Truth = nunjucks.nodes.Node.extend('Truth', { fields: ['target'] });
  const { assertType } = compiler;
  /** Makes a method test its condition by Python's rules. */
  const withTruth = (name: string) => {
    const original = compiler[name] as CompileMethod;
    compiler[name] = function (this: Compiler, node: { readonly cond: Node }, ...rest: [unknown]) {
      const cond = new Truth(0, 0, node.cond);
      original.call(this, Object.create(node, { cond: { value: cond } }) as never, ...rest);
    };
  };
  /** Turns a function into a method of the compiler. */
  const compileMethod = (compile: (compiler: Compiler, node: never, frame: unknown) => void) =>
    function (this: Compiler, node: never, frame: unknown) {
      compile(this, node, frame);
    };
  /** Compiles a binary expression into the call of a function with both operands. */
  const callWithOperands = (opening: string, between: string) =>
    compileMethod((self, { left, right }: Binary, frame) => {
      self._emit(opening);
      self.compile(left, frame);
      self._emit(between);
      self.compile(right, frame);
      self._emit(')');
    });
  /** Compiles an expression into the test of its truth. */
  const testOfTarget = (opening: string) =>
    compileMethod((self, { target }: { readonly target: Node }, frame) => {
      self._emit(opening);
      self.compile(target, frame);
      self._emit('))');
    });
  compiler.assertType = function (node, ...types) {
    if (!(node instanceof Truth)) assertType.call(this, node, ...types);
  };
  withTruth('compileIf');
  withTruth('compileInlineIf');
  compiler['compileTruth'] = testOfTarget('(runtime.isTrue(');
  compiler['compileNot'] = testOfTarget('(!runtime.isTrue(');
  compiler['compileAnd'] = callWithOperands('runtime.and(', ', () => ');
  compiler['compileOr'] = callWithOperands('runtime.or(', ', () => ');
  compiler['compileMod'] = callWithOperands('runtime.modulo(', ', ');
}
