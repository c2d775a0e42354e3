/**
 * Bounds the number of members of each type with the dependencies of a class or slice, such as `AccountDataDeps`
 * (docs/ARCHITECTURE.md). The compiler counts the members, so members of the types that an interface extends, and of each
 * part of an intersection, count too.
 */
import assert from 'node:assert/strict';
import { join, relative } from 'node:path';
import { describe, it } from 'node:test';
import type { Node, ParameterDeclaration, SourceFile } from 'typescript/unstable/ast';
import {
  isConstructorDeclaration,
  isFunctionDeclaration,
  isIdentifier,
  isInterfaceDeclaration,
  isParameterDeclaration,
  isTypeAliasDeclaration,
} from 'typescript/unstable/ast/is';
import { API, type Checker } from 'typescript/unstable/sync';

const maxMembers = 15;

/** The code that puts slices together, and passes the whole kernel on. */
const composition = /^src\/(composition|commands)\/|^src\/[^/]+\.ts$/;

const root = join(import.meta.dirname, '..');

/** A type with the dependencies of a class or slice. */
interface DependencyType {
  /** The name of the type, or the parameter that has the type. */
  readonly name: string;
  readonly file: string;
  readonly members: number;
}

/** Returns the types of dependencies in a file, with their numbers of members. */
function dependencyTypesIn(source: SourceFile, checker: Checker): DependencyType[] {
  const file = relative(root, source.fileName);
  const types: DependencyType[] = [];
  const add = (name: string, node: Node) => {
    const type = checker.getTypeAtLocation(node);
    if (type && !checker.isArrayLikeType(type))
      types.push({ name, file, members: checker.getPropertiesOfType(type).length });
  };
  const visit = (node: Node): void => {
    if ((isInterfaceDeclaration(node) || isTypeAliasDeclaration(node)) && namesDependencies(node.name.text))
      add(node.name.text, node.name);
    if (isParameterDeclaration(node) && node.type && takesDependencies(node, file))
      add(source.text.slice(node.pos, node.end).trim().replaceAll(/\s+/g, ' '), node.type);
    node.forEachChild(visit);
  };
  visit(source);
  return types;
}

const namesDependencies = (name: string) => /(Deps|Extensions)$/.test(name);

/**
 * Whether a parameter takes dependencies: by its name, or because a constructor or a function that opens a slice
 * destructures it.
 */
function takesDependencies({ name, parent }: ParameterDeclaration, file: string): boolean {
  if (isIdentifier(name)) return /^(deps|environment|extensions|areas)$/.test(name.text);
  if (isConstructorDeclaration(parent)) return true;
  const opens = isFunctionDeclaration(parent) && /^open[A-Z]/.test(parent.name?.text ?? '');
  return opens && !composition.test(file);
}

describe('types with the dependencies of a class or slice', () => {
  it(`have at most ${maxMembers} members`, () => {
    const api = new API({ cwd: root });
    try {
      const snapshot = api.updateSnapshot({ openProjects: [join(root, 'tsconfig.json')] });
      const types = snapshot.getProjects().flatMap(({ program, checker }) =>
        program
          .getSourceFileNames()
          .filter((path) => path.startsWith(join(root, 'src/')) && !/\.test\.ts$|\/test\//.test(path))
          .flatMap((path) => {
            const source = program.getSourceFile(path);
            return source ? dependencyTypesIn(source, checker) : [];
          }),
      );
      assert.ok(types.length > 500, 'the compiler must find the types of dependencies');
      const large = types.filter(({ members }) => members > maxMembers);
      assert.deepEqual(
        large.map(({ name, file, members }) => `${name} in ${file} has ${members}`),
        [],
        'group what belongs together, or divide the class',
      );
    } finally {
      api.close();
    }
  });
});
