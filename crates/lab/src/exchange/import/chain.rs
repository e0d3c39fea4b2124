//! The nodes of a graph in order, if it is a chain.

use super::super::nir::{Graph, Node};
use super::{ExchangeError, unmapped};

/// The nodes from the input to the output, each with one edge in and one out.
pub fn chain(graph: &Graph) -> Result<Vec<(&str, &Node)>, ExchangeError> {
    let refuse = |reason: String| Err(ExchangeError::Unmapped(reason));
    let mut inputs = graph.nodes.iter().filter(|(_, node)| matches!(node, Node::Input { .. }));
    let (Some(input), None) = (inputs.next(), inputs.next()) else {
        return refuse("the graph must have exactly one Input node".into());
    };
    let mut chain = vec![(input.0.as_str(), input.1)];
    loop {
        let &(name, node) = chain.last().expect("the chain starts with the input");
        let mut next = graph.edges.iter().filter(|(from, _)| from == name);
        match (next.next(), next.next()) {
            (None, _) if matches!(node, Node::Output { .. }) => break,
            (None, _) => return Err(unmapped(name, "nothing follows it; an Output node is expected".into())),
            (Some((_, to)), None) => {
                if graph.edges.iter().filter(|(_, target)| target == to).count() > 1 {
                    return Err(unmapped(to, "it has several inputs; LeakLab's networks are chains".into()));
                }
                match graph.nodes.get_key_value(to) {
                    Some((to, _)) if chain.iter().any(|(seen, _)| seen == to) => {
                        return Err(unmapped(
                            to,
                            "it is part of a loop; LeakLab's networks are chains".into(),
                        ));
                    }
                    Some((to, node)) => chain.push((to, node)),
                    None => return refuse(format!("an edge leads to '{to}', but there is no such node")),
                }
            }
            _ => return Err(unmapped(name, "it has several outputs; LeakLab's networks are chains".into())),
        }
    }
    match graph.nodes.keys().find(|name| !chain.iter().any(|(seen, _)| seen == name)) {
        Some(name) => Err(unmapped(name, "no path from the input leads to it".into())),
        None => Ok(chain),
    }
}
